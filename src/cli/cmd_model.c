// cotenant model show, model check: layers with shapes, work and traffic; whether a file can run.
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli/commands.h"
#include "cli/model_args.h"
#include "compile/interp/interp.h"
#include "model/work.h"

typedef struct Show {
    Arena   arena;
    Table   table;
    json_t *layers;
    Work    total;
} Show;

static const Column columns[] = {
    {.key = "name", .head = "layer"},
    {.key = "op", .head = "operator"},
    {.key = "inputs", .head = "input"},
    {.key = "output", .head = "output"},
    {.key = "macs", .head = "MMAC", .scale = 1e6, .decimals = 2},
    {.key = "weight_bytes", .head = "weights", .unit = "KB", .scale = 1e3, .decimals = 1},
    {.key = "in_bytes", .head = "in", .unit = "KB", .scale = 1e3, .decimals = 1},
    {.key = "out_bytes", .head = "out", .unit = "KB", .scale = 1e3, .decimals = 1},
    {.key = "macs_per_byte", .head = "MAC/B", .decimals = 1},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static const Tensor *value_type(const ShapedGraph *s, uint32_t v) {
    static const Tensor none = {.rank = RANK_UNKNOWN};
    return v != NO_VALUE ? &s->values[v] : &none;
}

// The first output that is present.
static uint32_t first_output(const Node *n) {
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE) return n->out[i];
    return NO_VALUE;
}

static void add_json(Show *out, const ShapedGraph *s, const Node *n, const char *name,
                     const Work *w) {
    json_t *inputs = json_array();
    for (uint32_t i = 0; i < n->n_in; i++)
        json_array_append_new(inputs, command_shape(value_type(s, n->in[i])));
    json_array_append_new(
        out->layers,
        json_pack("{s:s,s:s,s:o,s:o,s:I,s:I,s:I,s:I}", "name", name, "op", op_info(n->op)->name,
                  "inputs", inputs, "output", command_shape(value_type(s, first_output(n))), "macs",
                  (json_int_t)w->macs, "weight_bytes", (json_int_t)w->weight_bytes, "in_bytes",
                  (json_int_t)w->in_bytes, "out_bytes", (json_int_t)w->out_bytes));
}

static double intensity(const Work *w) {
    double bytes = (double)w->weight_bytes + (double)w->in_bytes + (double)w->out_bytes;
    return bytes > 0 ? (double)w->macs / bytes : 0;
}

static void add_numbers(Table *t, const Work *w) {
    table_int(t, w->macs);
    table_int(t, w->weight_bytes);
    table_int(t, w->in_bytes);
    table_int(t, w->out_bytes);
    table_real(t, intensity(w));
}

static void add_row(Show *out, const ShapedGraph *s, const Node *n, const char *name,
                    const Work *w) {
    char in[128], to[128];
    tensor_shape_text(value_type(s, n->n_in > 0 ? n->in[0] : NO_VALUE), in, sizeof in);
    tensor_shape_text(value_type(s, first_output(n)), to, sizeof to);
    table_row(&out->table);
    table_text(&out->table, name);
    table_text(&out->table, op_info(n->op)->name);
    table_text(&out->table, in);
    table_text(&out->table, to);
    add_numbers(&out->table, w);
}

static void add_up(Work *total, const Work *w) {
    total->macs += w->macs;
    total->params += w->params;
    total->weight_bytes += w->weight_bytes;
    total->in_bytes += w->in_bytes;
    total->out_bytes += w->out_bytes;
}

// Subgraphs of control flow follow their node; their layers are named node/attribute/layer.
static Err add_graph(Show *out, const ShapedGraph *s, const char *prefix) {
    Work total = {0};
    TRY(work_total(s, &out->arena, &total));
    add_up(&out->total, &total);
    for (uint32_t i = 0; i < s->graph->n_nodes; i++) {
        if (s->folded[i]) continue;
        const Node *n = &s->graph->nodes[i];
        const char *name = arena_printf(&out->arena, "%s%s", prefix, n->name);
        Work        w = {0};
        TRY(work_node(s, i, &out->arena, &w));
        add_json(out, s, n, name, &w);
        add_row(out, s, n, name, &w);
        for (uint32_t k = 0; k < n->n_attr; k++) {
            if (n->attrs[k].kind != ATTR_GRAPH) continue;
            const ShapedGraph *body = shaped_graph_body(s, n->attrs[k].v.g);
            const char        *inside = arena_printf(&out->arena, "%s/%s/", name, n->attrs[k].name);
            if (body != NULL) TRY(add_graph(out, body, inside));
        }
    }
    return ERR_OK;
}

static int print_show(Show *out, const Model *m, bool json, bool csv) {
    if (json)
        return command_json(json_pack("{s:s,s:O,s:{s:I,s:I,s:I}}", "model", m->name, "layers",
                                      out->layers, "total", "macs", (json_int_t)out->total.macs,
                                      "params", (json_int_t)out->total.params, "weight_bytes",
                                      (json_int_t)out->total.weight_bytes));
    table_total(&out->table);
    table_text(&out->table, "total");
    table_textf(&out->table, "%.3f M params", (double)out->total.params / 1e6);
    table_missing(&out->table);
    table_missing(&out->table);
    add_numbers(&out->table, &out->total);
    Err e = csv ? table_csv(&out->table, stdout) : table_print(&out->table, stdout);
    return e == ERR_OK ? 0 : command_failed(e);
}

static Err specialise(const Model *m, const ModelArgs *o, int64_t otherwise, ShapeCache *all,
                      Arena *a, const ShapedGraph **s) {
    Tensor *in = arena_new(a, Tensor, m->graph->n_inputs);
    shape_cache_init(all, m, interp_eval);
    TRY(model_args_input_types(m, o, otherwise, in));
    return shape_cache_get(all, in, s);
}

int cmd_model_show(const Command *c, int argc, char **argv) {
    ModelArgs    o = MODEL_ARGS_DEFAULT;
    bool         json = false, csv = false;
    const ArgRow rows[] = {
        {"dim", ARG_LIST, &o.dims, "NAME=N", "size of an open dimension (default 1)", 0, 0},
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
        {"csv", ARG_FLAG, &csv, NULL, "comma-separated values on stdout", 0, 0},
        MODEL_ARG_ROWS(o),
    };
    const char *what = NULL;
    int         code = args_parse(c, rows, 6, argc, argv, &what, 1, 1, NULL);
    if (code >= 0) return code;
    Model              m = {0};
    ShapeCache         all = {0};
    Show               out = {.layers = json_array()};
    const ShapedGraph *s = NULL;
    Err                e = arena_init_growing(&out.arena, 1 << 20, (size_t)1 << 34);
    if (e == ERR_OK) e = model_args_load(what, &o, &m);
    for (uint32_t i = 0; e == ERR_OK && i < m.graph->n_inputs; i++)
        model_args_note_open(&m.graph->values[m.graph->inputs[i]], &o);
    if (e == ERR_OK) e = specialise(&m, &o, 1, &all, &out.arena, &s);
    table_init(&out.table, &out.arena, columns, N_COLUMNS);
    if (e == ERR_OK) e = add_graph(&out, s, "");
    code = e == ERR_OK ? print_show(&out, &m, json, csv) : command_failed(e);
    json_decref(out.layers);
    shape_cache_finish(&all);
    model_finish(&m);
    arena_finish(&out.arena);
    return code;
}

int cmd_model_check(const Command *c, int argc, char **argv) {
    ModelArgs    o = MODEL_ARGS_DEFAULT;
    bool         json = false;
    const ArgRow rows[] = {
        {"dim", ARG_LIST, &o.dims, "NAME=N", "size of an open dimension (default: any)", 0, 0},
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    const char *what = NULL;
    int         code = args_parse(c, rows, 2, argc, argv, &what, 1, 1, NULL);
    if (code >= 0) return code;
    Model              m = {0};
    ShapeCache         all = {0};
    Arena              a = {0};
    const ShapedGraph *s = NULL;
    Err                e = arena_init(&a, 1 << 24);
    if (e == ERR_OK) e = model_args_load(what, &o, &m);
    if (e == ERR_OK) e = specialise(&m, &o, DIM_UNKNOWN, &all, &a, &s);
    if (json)
        code = command_json(
            json_pack("{s:b,s:s}", "ok", e == ERR_OK, "reason", e == ERR_OK ? "" : err_why()));
    else if (e == ERR_OK)
        printf("%s: ok, %u nodes, operator set %d, written by %s\n", what, m.graph->n_nodes,
               m.opset, m.producer);
    if (e != ERR_OK) code = command_failed(e);
    shape_cache_finish(&all);
    model_finish(&m);
    arena_finish(&a);
    return code > 0 ? code : 0;
}
