// cotenant chip cost: cost of each layer of a network on one accelerator, or on each of a package.
#include <math.h>
#include <stdio.h>

#include "base/table.h"
#include "chip/cost/layer_cost_table.h"
#include "cli/commands.h"
#include "cli/model_args.h"
#include "compile/interp/interp.h"

typedef struct Options {
    ModelArgs   load;
    const char *network, *unit, *chip, *table;
    bool        json, fill;
} Options;

typedef struct Layers {
    Shape   *at;
    uint32_t n;
} Layers;

static Err list_model(const Options *o, const Model *m, Arena *a, Layers *out) {
    ShapeCache         all;
    const ShapedGraph *s = NULL;
    Tensor            *in = arena_new(a, Tensor, m->graph->n_inputs);
    for (uint32_t i = 0; i < m->graph->n_inputs; i++)
        model_args_note_open(&m->graph->values[m->graph->inputs[i]], &o->load);
    TRY(model_args_input_types(m, &o->load, 1, in));
    shape_cache_init(&all, m, interp_eval);
    Err e = shape_cache_get(&all, in, &s);
    if (e == ERR_OK) e = shape_list_of(s, a, &out->at, &out->n);
    shape_cache_finish(&all);
    return e;
}

static Err list_layers(const Options *o, Arena *a, Layers *out) {
    Model m = {0};
    if (shape_known(o->network)) return shape_list(o->network, o->load.batch, a, &out->at, &out->n);
    TRY(model_args_load(o->network, &o->load, &m));
    Err e = list_model(o, &m, a, out);
    model_finish(&m);
    return e == ERR_OK ? e : err_add(e, "%s", o->network);
}

typedef struct Total {
    double   macs, cycles, read_bytes, write_bytes, energy_pj;
    uint32_t cannot;
} Total;

static void add_up(Total *t, const Shape *s, const Cost *c) {
    if (isinf(c->cycles)) {
        t->cannot++;
        return;
    }
    t->macs += shape_macs(s);
    t->cycles += c->cycles;
    t->read_bytes += c->read_bytes;
    t->write_bytes += c->write_bytes;
    t->energy_pj += c->energy_pj;
}

static const char *bound_by(const Cost *c) {
    if (!(c->array_cycles > 0)) return "table";
    if (c->memory_cycles > c->array_cycles && c->memory_cycles > c->buffer_cycles) return "memory";
    return c->buffer_cycles > c->array_cycles ? "buffer" : "array";
}

static const Column columns[] = {
    {.key = "name", .head = "layer"},
    {.key = "op", .head = "operator"},
    {.key = "macs", .head = "MMAC", .scale = 1e6, .decimals = 2},
    {.key = "cycles", .head = "kcycles", .scale = 1e3, .decimals = 1},
    {.key = "utilization", .head = "busy", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "bound", .head = "bound by"},
    {.key = "dram_read_bytes", .head = "read", .unit = "KB", .scale = 1e3, .decimals = 1},
    {.key = "dram_write_bytes", .head = "written", .unit = "KB", .scale = 1e3, .decimals = 1},
    {.key = "bytes_per_cycle", .head = "B/cycle", .decimals = 2},
    {.key = "energy_pj", .head = "uJ", .scale = 1e6, .decimals = 2},
    {.key = "mapping", .head = "spatial; temporal"},
};

static void mapping_text(Table *t, const Mapping *m) {
    table_textf(t, "k%lld c%lld p%lld q%lld; n%lld k%lld c%lld p%lld", (long long)m->split_k,
                (long long)m->split_c, (long long)m->split_p, (long long)m->split_q,
                (long long)m->tile_n, (long long)m->tile_k, (long long)m->tile_c,
                (long long)m->tile_p);
}

static void add_row(Table *t, const Shape *s, const Cost *c) {
    table_row(t);
    table_text(t, s->name);
    table_text(t, s->op);
    table_real(t, shape_macs(s));
    if (isinf(c->cycles)) return;
    table_real(t, c->cycles);
    table_real(t, c->utilization);
    table_text(t, bound_by(c));
    table_real(t, c->read_bytes);
    table_real(t, c->write_bytes);
    table_real(t, c->bytes_cycle);
    table_real(t, c->energy_pj);
    if (c->array_cycles > 0) mapping_text(t, &c->mapping);
}

static double per(double a, double b) { return b > 0 ? a / b : 0; }

static Err print_unit(const Layers *l, const UnitSpec *u, const Cost *costs, Arena *a) {
    Table t;
    Total sum = {0};
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < l->n; i++) {
        add_row(&t, &l->at[i], &costs[i]);
        add_up(&sum, &l->at[i], &costs[i]);
    }
    table_total(&t);
    table_text(&t, "total");
    table_textf(&t, "%u layers", l->n - sum.cannot);
    table_real(&t, sum.macs);
    table_real(&t, sum.cycles);
    table_real(&t, per(sum.macs / unit_spec_macs(u), sum.cycles));
    table_missing(&t);
    table_real(&t, sum.read_bytes);
    table_real(&t, sum.write_bytes);
    table_real(&t, per(sum.read_bytes + sum.write_bytes, sum.cycles));
    table_real(&t, sum.energy_pj);
    TRY(table_print(&t, stdout));
    printf("\n%s: %s; %.3f ms at %g MHz", u->name, u->about, sum.cycles / u->clock_mhz / 1e3,
           u->clock_mhz);
    if (sum.cannot > 0) printf("; %u layers that it does not support are left out", sum.cannot);
    puts("");
    return ERR_OK;
}

static json_t *mapping_json(const Mapping *m) {
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "split_k", (json_int_t)m->split_k,
                     "split_c", (json_int_t)m->split_c, "split_p", (json_int_t)m->split_p,
                     "split_q", (json_int_t)m->split_q, "tile_n", (json_int_t)m->tile_n, "tile_k",
                     (json_int_t)m->tile_k, "tile_c", (json_int_t)m->tile_c, "tile_p",
                     (json_int_t)m->tile_p, "element_k", (json_int_t)m->element_k, "element_c",
                     (json_int_t)m->element_c);
}

static json_t *layer_json(const Shape *s, const Cost *c) {
    json_t *j =
        json_pack("{s:s,s:s,s:I}", "name", s->name, "op", s->op, "macs", (json_int_t)shape_macs(s));
    if (isinf(c->cycles)) {
        static const char *const keys[] = {"cycles",          "dram_read_bytes", "dram_write_bytes",
                                           "bytes_per_cycle", "energy_pj",       "utilization"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            json_object_set_new(j, keys[i], json_null());
        return j;
    }
    json_object_update_new(
        j, json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o}", "cycles", c->cycles,
                     "dram_read_bytes", c->read_bytes, "dram_write_bytes", c->write_bytes,
                     "bytes_per_cycle", c->bytes_cycle, "energy_pj", c->energy_pj, "utilization",
                     c->utilization, "array_cycles", c->array_cycles, "buffer_cycles",
                     c->buffer_cycles, "memory_cycles", c->memory_cycles, "buffer_bytes",
                     c->buffer_bytes, "mapping", mapping_json(&c->mapping)));
    return j;
}

static int json_unit(const Options *o, const Layers *l, const UnitSpec *u, const Cost *costs) {
    json_t *layers = json_array();
    Total   sum = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        json_array_append_new(layers, layer_json(&l->at[i], &costs[i]));
        add_up(&sum, &l->at[i], &costs[i]);
    }
    double  bytes = sum.read_bytes + sum.write_bytes;
    json_t *total = json_pack(
        "{s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:i,s:i}", "macs", (json_int_t)sum.macs, "cycles",
        sum.cycles, "dram_read_bytes", sum.read_bytes, "dram_write_bytes", sum.write_bytes,
        "bytes_per_cycle", per(bytes, sum.cycles), "energy_pj", sum.energy_pj, "utilization",
        per(sum.macs / unit_spec_macs(u), sum.cycles), "ms", sum.cycles / u->clock_mhz / 1e3,
        "layers", (int)(l->n - sum.cannot), "cannot_compute", (int)sum.cannot);
    return command_json(json_pack("{s:s,s:s,s:I,s:o,s:o}", "network", o->network, "unit", u->name,
                                  "batch", (json_int_t)o->load.batch, "layers", layers, "total",
                                  total));
}

// Costs of all layers on a unit: from the table, if one is given.
static Err find_costs(const Options *o, const Layers *l, const UnitSpec *u, Arena *a, Cost *out) {
    LayerCostTable t;
    if (o->table == NULL) {
        cost_all(l->at, l->n, u, out);
        return ERR_OK;
    }
    TRY(layer_cost_table_read(o->table, a, &t));
    t.fill = o->fill;
    TRY(layer_cost_table_check(&t, &o->network, 1, (const char *const[]){u->name}, 1));
    return layer_cost_table_apply(&t, o->network, l->at, l->n, u, a, out);
}

// The same for every kind of a package, one after the other.
static Err package_costs(const Options *o, const Layers *l, const Package *p, Arena *a, Cost *out) {
    LayerCostTable t;
    const char    *units[CHIP_KINDS];
    for (uint32_t k = 0; k < p->n_kinds; k++) units[k] = p->kinds[k].unit->name;
    if (o->table != NULL) {
        TRY(layer_cost_table_read(o->table, a, &t));
        t.fill = o->fill;
        TRY(layer_cost_table_check(&t, &o->network, 1, units, p->n_kinds));
    }
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const UnitSpec *u = p->kinds[k].unit;
        Cost           *to = out + (size_t)k * l->n;
        if (o->table == NULL)
            cost_all(l->at, l->n, u, to);
        else
            TRY(layer_cost_table_apply(&t, o->network, l->at, l->n, u, a, to));
    }
    return ERR_OK;
}

static Err print_package(const Layers *l, const Package *p, const Cost *costs, Arena *a) {
    uint32_t n = 3 + 2 * p->n_kinds;
    Column  *cols = arena_new(a, Column, n);
    Table    t;
    cols[0] = columns[0];
    cols[1] = columns[1];
    cols[2] = columns[2];
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const char *name = p->kinds[k].unit->name;
        cols[3 + 2 * k] = (Column){.key = name, .head = name, .unit = "us", .decimals = 1};
        cols[4 + 2 * k] = (Column){.key = "bytes_ns", .head = "B/ns", .decimals = 2};
    }
    table_init(&t, a, cols, n);
    for (uint32_t i = 0; i < l->n; i++) {
        table_row(&t);
        table_text(&t, l->at[i].name);
        table_text(&t, l->at[i].op);
        table_real(&t, shape_macs(&l->at[i]));
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            const UnitSpec *u = p->kinds[k].unit;
            Cost            c = costs[(size_t)k * l->n + i];
            if (isinf(c.cycles)) {
                table_missing(&t);
                table_missing(&t);
                continue;
            }
            table_real(&t, c.cycles / u->clock_mhz);
            table_real(&t, c.bytes_cycle * u->clock_mhz / 1e3);
        }
    }
    TRY(table_print(&t, stdout));
    printf("\n%s: %s, memory %g B/ns\n", p->name, p->units, p->bytes_cycle * p->clock_mhz / 1e3);
    return ERR_OK;
}

static int json_package(const Options *o, const Layers *l, const Package *p, const Cost *costs) {
    json_t *layers = json_array();
    for (uint32_t i = 0; i < l->n; i++) {
        json_t *kinds = json_array();
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            json_t *one = layer_json(&l->at[i], &costs[(size_t)k * l->n + i]);
            json_object_set_new(one, "unit", json_string(p->kinds[k].unit->name));
            json_array_append_new(kinds, one);
        }
        json_array_append_new(layers, json_pack("{s:s,s:s,s:I,s:o}", "name", l->at[i].name, "op",
                                                l->at[i].op, "macs",
                                                (json_int_t)shape_macs(&l->at[i]), "units", kinds));
    }
    return command_json(json_pack("{s:s,s:s,s:I,s:o}", "network", o->network, "package", p->name,
                                  "batch", (json_int_t)o->load.batch, "layers", layers));
}

static int on_unit(const Options *o, const Layers *l, Arena *a) {
    UnitSpec u;
    Cost    *costs = arena_new(a, Cost, l->n);
    Err      e = unit_spec_load(o->unit, a, &u);
    if (e == ERR_OK) e = find_costs(o, l, &u, a, costs);
    if (e != ERR_OK) return command_failed(e);
    if (o->json) return json_unit(o, l, &u, costs);
    e = print_unit(l, &u, costs, a);
    return e == ERR_OK ? 0 : command_failed(e);
}

static int on_package(const Options *o, const Layers *l, Arena *a) {
    Package p;
    Err     e = package_load(o->chip, a, &p);
    if (e != ERR_OK) return command_failed(e);
    Cost *costs = arena_new(a, Cost, (size_t)l->n * p.n_kinds);
    e = package_costs(o, l, &p, a, costs);
    if (e != ERR_OK) return command_failed(e);
    if (o->json) return json_package(o, l, &p, costs);
    e = print_package(l, &p, costs, a);
    return e == ERR_OK ? 0 : command_failed(e);
}

int cmd_chip_cost(const Command *c, int argc, char **argv) {
    Options      o = {.load = MODEL_ARGS_DEFAULT};
    const ArgRow rows[] = {
        {"unit", ARG_TEXT, &o.unit, "U", "accelerator: a name or a YAML file", 0, 0},
        {"chip", ARG_TEXT, &o.chip, "NAME", "package: a name or a YAML file", 0, 0},
        {"table", ARG_TEXT, &o.table, "FILE", "costs of layers from CSV, not from the cost model",
         0, 0},
        {"table-fill", ARG_FLAG, &o.fill, NULL,
         "layers without a row cost what the cost model says", 0, 0},
        {"dim", ARG_LIST, &o.load.dims, "NAME=N", "size of an open dimension (default 1)", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
        MODEL_ARG_ROWS(o.load),
    };
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, &o.network, 1, 1, NULL);
    if (code >= 0) return code;
    if (o.unit != NULL && o.chip != NULL)
        return args_fail(EXIT_USAGE, "give --unit or --chip, not both");
    if (o.unit == NULL && o.chip == NULL) o.chip = "4+4";
    Arena  a = {0};
    Layers l = {0};
    Err    e = arena_init_growing(&a, 1 << 20, (size_t)1 << 32);
    if (e == ERR_OK) e = list_layers(&o, &a, &l);
    code = e != ERR_OK      ? command_failed(e)
           : o.unit != NULL ? on_unit(&o, &l, &a)
                            : on_package(&o, &l, &a);
    arena_finish(&a);
    return code;
}
