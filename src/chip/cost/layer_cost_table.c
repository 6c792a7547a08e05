#include "chip/cost/layer_cost_table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "chip/chip_file.h"
#include "model/zoo/zoo.h"

enum { NETWORK, LAYER, UNIT, CYCLES, BYTES, ENERGY_PJ, COLUMNS };
static const char *const columns[COLUMNS] = {"network", "layer", "unit",
                                             "cycles",  "bytes", "energy_pj"};
static const double      MOST = 1e15;
enum { KNOWN = 256 };

typedef struct Reader {
    Csv            csv;
    Arena         *arena;
    uint32_t       field[COLUMNS];  // of the row, by column
    uint32_t       room;
    LayerCostTable table;
} Reader;

// Names without their folder, in lower case, - as _.
static const char *key_of(Arena *a, const char *network, const char *unit, const char *layer) {
    const char *slash = strrchr(network, '/');
    char       *key = arena_printf(a, "%s\t%s\t", slash != NULL ? slash + 1 : network, unit);
    for (char *p = key; *p != '\0'; p++) *p = *p == '-' ? '_' : (char)tolower((unsigned char)*p);
    return arena_printf(a, "%s%s", key, layer);
}

static Err read_header(Reader *r) {
    Csv *c = &r->csv;
    bool more = false;
    char hint[TEXT_MEANT];
    TRY(csv_next(c, &more));
    for (int i = 0; i < COLUMNS; i++) {
        uint32_t f = 0;
        while (more && f < c->n && strcmp(c->field[f], columns[i]) != 0) f++;
        if (!more || f == c->n)
            return err_set(ERR_PARSE,
                           "%s:1: no column '%s'; a table of costs has network,layer,unit,cycles,"
                           "bytes,energy_pj%s%s",
                           c->name, columns[i], more ? "; " : "",
                           more ? text_meant(columns[i], (const char *const *)c->field, c->n,
                                             "rename the columns", hint)
                                : "");
        r->field[i] = f;
    }
    return ERR_OK;
}

static Err real(const Reader *r, int column, double least, double *out) {
    const char *text = r->csv.field[r->field[column]];
    char       *end = NULL;
    double      x = strtod(text, &end);
    if (end != text && *end == '\0' && text[strspn(text, "0123456789+-.eE")] == '\0' &&
        x >= least && x <= MOST) {
        *out = x;
        return ERR_OK;
    }
    return err_set(ERR_PARSE, "%s:%zu: %s '%.40s'; give a number from %g to %g", r->csv.name,
                   r->csv.line, columns[column], text, least, MOST);
}

// Cycles that are empty or - stand for a layer that the unit cannot compute.
static Err read_costs(const Reader *r, LayerCostRow *x) {
    const char *cycles = r->csv.field[r->field[CYCLES]];
    x->cycles = INFINITY;
    if (cycles[0] == '\0' || strcmp(cycles, "-") == 0) return ERR_OK;
    TRY(real(r, CYCLES, 1, &x->cycles));
    TRY(real(r, BYTES, 0, &x->bytes));
    return real(r, ENERGY_PJ, 0, &x->energy_pj);
}

static Err read_names(const Reader *r, LayerCostRow *x) {
    const char *const names[] = {r->csv.field[r->field[NETWORK]], r->csv.field[r->field[LAYER]],
                                 r->csv.field[r->field[UNIT]]};
    for (int i = 0; i < 3; i++)
        if (names[i][0] == '\0' || strchr(names[i], '\t') != NULL || strlen(names[i]) > 400)
            return err_set(ERR_PARSE, "%s:%zu: %s is empty, too long or has a tab", r->csv.name,
                           r->csv.line, columns[i]);
    *x = (LayerCostRow){
        .network = names[0], .layer = names[1], .unit = names[2], .line = r->csv.line};
    return ERR_OK;
}

static Err read_row(Reader *r) {
    LayerCostTable *t = &r->table;
    LayerCostRow    x;
    for (int i = 0; i < COLUMNS; i++)
        if (r->field[i] >= r->csv.n)
            return err_set(ERR_PARSE, "%s:%zu: %u fields, no %s", r->csv.name, r->csv.line,
                           r->csv.n, columns[i]);
    TRY(read_names(r, &x));
    TRY(read_costs(r, &x));
    const char *key = key_of(r->arena, x.network, x.unit, x.layer);
    uint32_t    before = string_map_get(&t->rows, key);
    if (before != STRING_MAP_NONE)
        return err_set(ERR_PARSE, "%s:%zu: layer '%.80s' of %s on %s has a row already, line %zu",
                       r->csv.name, r->csv.line, x.layer, x.network, x.unit, t->at[before].line);
    string_map_put(&t->rows, key, t->n);
    t->at[t->n++] = x;
    return ERR_OK;
}

static Err parse(const char *name, char *text, size_t len, Arena *a, LayerCostTable *out) {
    Reader r = {.arena = a, .table = {.name = arena_str(a, name)}};
    bool   more = true;
    size_t lines = 1;
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    r.table.at = arena_try_new(a, LayerCostRow, lines);
    if (r.table.at == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu rows", name, lines);
    string_map_init(&r.table.rows, a);
    TRY(csv_open(&r.csv, r.table.name, text, len, ',', true));
    TRY(read_header(&r));
    for (;;) {
        if (csv_blank(&r.csv)) break;
        TRY(csv_next(&r.csv, &more));
        if (!more) break;
        TRY(read_row(&r));
    }
    if (r.table.n == 0) return err_set(ERR_PARSE, "%s: has a header and no costs", name);
    *out = r.table;
    return ERR_OK;
}

Err layer_cost_table_parse(const char *name, const char *text, size_t len, Arena *a,
                           LayerCostTable *out) {
    char *copy = arena_try(a, len + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu bytes", name, len);
    if (len > 0) memcpy(copy, text, len);
    return parse(name, copy, len, a, out);
}

Err layer_cost_table_read(const char *path, Arena *a, LayerCostTable *out) {
    char  *text = NULL;
    size_t len = 0;
    TRY(file_read(path, LAYER_COST_TABLE_BYTES, a, &text, &len));
    return parse(path, text, len, a, out);
}

typedef struct Known {
    const char *at[KNOWN];
    uint32_t    n;
} Known;

static void know(Known *k, const char *name) {
    const char *slash = strrchr(name, '/');
    if (k->n < KNOWN) k->at[k->n++] = slash != NULL ? slash + 1 : name;
}

static bool knows(const Known *k, const char *name) {
    const char *slash = strrchr(name, '/');
    for (uint32_t i = 0; i < k->n; i++)
        if (chip_file_same(k->at[i], slash != NULL ? slash + 1 : name)) return true;
    return false;
}

static Err unknown(const LayerCostTable *t, const LayerCostRow *x, const char *what,
                   const char *name, const Known *k, const char *otherwise) {
    char hint[TEXT_MEANT];
    return err_set(ERR_PARSE, "%s:%zu: no %s '%.80s'; %s", t->name, x->line, what, name,
                   text_meant(name, k->at, k->n, otherwise, hint));
}

Err layer_cost_table_check(const LayerCostTable *t, const char *const *networks,
                           uint32_t n_networks, const char *const *units, uint32_t n_units) {
    Known nets = {.n = 0}, kinds = {.n = 0};
    for (uint32_t i = 0; i < n_networks; i++) know(&nets, networks[i]);
    for (uint32_t i = 0; i < n_units; i++) know(&kinds, units[i]);
    for (uint32_t i = 0; zoo_entry(i) != NULL; i++) know(&nets, zoo_entry(i)->name);
    for (uint32_t i = 0; unit_spec_name(i) != NULL; i++) know(&kinds, unit_spec_name(i));
    for (uint32_t i = 0; i < t->n; i++) {
        const LayerCostRow *x = &t->at[i];
        if (!knows(&nets, x->network))
            return unknown(t, x, "network", x->network, &nets, "'cotenant zoo list' has the names");
        if (!knows(&kinds, x->unit))
            return unknown(t, x, "unit", x->unit, &kinds, "'cotenant chip list' has the names");
    }
    return ERR_OK;
}

static Cost cost_of_row(const LayerCostRow *x, const Shape *s, const UnitSpec *u) {
    Cost c = {.cycles = x->cycles};
    if (isinf(x->cycles)) return c;
    c.read_bytes = x->bytes;
    c.bytes_cycle = x->bytes / x->cycles;
    c.energy_pj = x->energy_pj;
    c.utilization = shape_macs(s) / (x->cycles * unit_spec_macs(u));
    return c;
}

// Rows that name a layer which the network lacks would otherwise be ignored.
static Err check_used(const LayerCostTable *t, const char *network, const Shape *s, uint32_t n,
                      const UnitSpec *u, const uint8_t *used, Arena *scratch) {
    const char **names = arena_new(scratch, const char *, n);
    const char  *whole = key_of(scratch, network, u->name, "");
    char         hint[TEXT_MEANT];
    for (uint32_t i = 0; i < n; i++) names[i] = s[i].name;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t              mark = scratch->used;
        const LayerCostRow *x = &t->at[i];
        bool                same = strcmp(whole, key_of(scratch, x->network, x->unit, "")) == 0;
        arena_rewind(scratch, mark);
        if (!same || used[i]) continue;
        return err_set(
            ERR_PARSE, "%s:%zu: %s has no layer '%.80s'; %s", t->name, x->line, network, x->layer,
            text_meant(x->layer, names, n, "'cotenant chip cost NETWORK' lists them", hint));
    }
    return ERR_OK;
}

static uint32_t find_row(const LayerCostTable *t, const char *network, const Shape *s, uint32_t i,
                         const UnitSpec *u, Arena *scratch) {
    char number[16];
    (void)snprintf(number, sizeof number, "#%u", i);
    uint32_t row = string_map_get(&t->rows, key_of(scratch, network, u->name, s->name));
    if (row != STRING_MAP_NONE) return row;
    return string_map_get(&t->rows, key_of(scratch, network, u->name, number));
}

static Err apply(const LayerCostTable *t, const char *network, const Shape *s, uint32_t n,
                 const UnitSpec *u, Arena *scratch, Cost *out) {
    uint8_t *used = arena_new(scratch, uint8_t, t->n);
    for (uint32_t i = 0; i < n; i++) {
        size_t   mark = scratch->used;
        uint32_t row = find_row(t, network, &s[i], i, u, scratch);
        arena_rewind(scratch, mark);
        if (row != STRING_MAP_NONE) {
            out[i] = cost_of_row(&t->at[row], &s[i], u);
            used[row] = 1;
        } else if (!t->fill) {
            return err_set(ERR_CONFIG,
                           "%s: no row for layer '%.80s' of %s on %s; add it, or give --table-fill "
                           "to use the cost model for it",
                           t->name, s[i].name, network, u->name);
        }
    }
    return check_used(t, network, s, n, u, used, scratch);
}

Err layer_cost_table_apply(const LayerCostTable *t, const char *network, const Shape *s, uint32_t n,
                           const UnitSpec *u, Arena *scratch, Cost *out) {
    size_t mark = scratch->used;
    if (t->fill) cost_all(s, n, u, out);
    Err e = apply(t, network, s, n, u, scratch, out);
    arena_rewind(scratch, mark);
    return e;
}
