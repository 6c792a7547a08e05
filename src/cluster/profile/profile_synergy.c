// Synergy's tables: speed by cores and memory per GPU, one row per point.
#include <string.h>

#include "cluster/profile/profiles_int.h"

enum { SET, MODEL, GPUS, CORES, GB, SPEED, TABLE_COLUMNS };
static const char *const table_columns[] = {"set",          "model",          "gpus",
                                            "cpus_per_gpu", "mem_gb_per_gpu", "norm_throughput"};

enum { META_SET, META_MODEL, META_GPUS, META_TIME, META_COLUMNS };
static const char *const meta_columns[] = {"set", "model", "gpus", "iter_time_s"};

typedef struct Table {
    ProfileGrid grid;
    size_t      line[PROFILE_ROWS][PROFILE_COLUMNS];  // 0: absent
    size_t      first_line;                           // 0: class absent
} Table;

static const char *wanted_set(const ProfileReader *r) {
    return r->o->set != NULL ? r->o->set : "models";
}

// Only tables for one GPU: those for several lack the memory.
static bool wanted(const ProfileReader *r, const Csv *c, uint32_t set, uint32_t gpus) {
    return strcmp(c->field[set], wanted_set(r)) == 0 && strcmp(c->field[gpus], "1") == 0;
}

static void open_row(Table *t, uint32_t at) {
    for (uint32_t i = t->grid.rows; i > at; i--) {
        t->grid.row[i] = t->grid.row[i - 1];
        memcpy(t->grid.at[i], t->grid.at[i - 1], sizeof t->grid.at[i]);
        memcpy(t->line[i], t->line[i - 1], sizeof t->line[i]);
    }
    memset(t->line[at], 0, sizeof t->line[at]);
    t->grid.rows++;
}

static void open_column(Table *t, uint32_t at) {
    for (uint32_t k = t->grid.columns; k > at; k--) {
        t->grid.column[k] = t->grid.column[k - 1];
        for (uint32_t i = 0; i < t->grid.rows; i++) {
            t->grid.at[i][k] = t->grid.at[i][k - 1];
            t->line[i][k] = t->line[i][k - 1];
        }
    }
    for (uint32_t i = 0; i < t->grid.rows; i++) t->line[i][at] = 0;
    t->grid.columns++;
}

// Index of x on an axis; *fresh: it has to be inserted.
static uint32_t place(const double *axis, uint32_t n, double x, bool *fresh) {
    uint32_t i = 0;
    while (i < n && axis[i] < x) i++;
    *fresh = i == n || axis[i] != x;
    return i;
}

static Err put(const Csv *c, Table *t, double cores, double gb, double speed) {
    bool     new_row = false, new_column = false;
    uint32_t i = place(t->grid.row, t->grid.rows, cores, &new_row);
    uint32_t k = place(t->grid.column, t->grid.columns, gb, &new_column);
    if ((new_row && t->grid.rows == PROFILE_ROWS) ||
        (new_column && t->grid.columns == PROFILE_COLUMNS))
        return err_set(ERR_LIMIT, "%s:%zu: more than %d levels of cores or %d of memory", c->name,
                       c->line, PROFILE_ROWS, PROFILE_COLUMNS);
    if (new_row) open_row(t, i);
    if (new_column) open_column(t, k);
    if (t->line[i][k] != 0)
        return err_set(ERR_PARSE, "%s:%zu: the point of line %zu again", c->name, c->line,
                       t->line[i][k]);
    t->grid.row[i] = cores;
    t->grid.column[k] = gb;
    t->grid.at[i][k] = speed;
    t->line[i][k] = c->line;
    return ERR_OK;
}

static Err read_point(ProfileReader *r, const Csv *c, const uint32_t *field, Table *tables) {
    double   cores = 0, gb = 0, speed = 0;
    uint32_t x = 0;
    TRY(profile_number(c, field[CORES], table_columns[CORES], 0.001, 4096, &cores));
    TRY(profile_number(c, field[GB], table_columns[GB], 0.001, 65536, &gb));
    TRY(profile_number(c, field[SPEED], table_columns[SPEED], 0, 1000, &speed));
    Err e = profile_class(r, c->field[field[MODEL]], &x);
    if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
    if (x == PROFILE_NONE) return ERR_OK;
    if (tables[x].first_line == 0) tables[x].first_line = c->line;
    return put(c, &tables[x], cores, gb, speed);
}

static Err check_point(const ProfileReader *r, const Table *t, uint32_t i, uint32_t k) {
    const ProfileGrid *g = &t->grid;
    if (t->line[i][k] == 0)
        return err_set(ERR_PARSE, "%s:%zu: the table that begins here lacks %g cores with %g GB",
                       r->name, t->first_line, g->row[i], g->column[k]);
    if ((i > 0 && g->at[i][k] < g->at[i - 1][k]) || (k > 0 && g->at[i][k] < g->at[i][k - 1]))
        return err_set(ERR_PARSE, "%s:%zu: slower than with less cores or memory", r->name,
                       t->line[i][k]);
    return ERR_OK;
}

static Err take(ProfileReader *r, Table *tables) {
    uint32_t found = 0;
    for (uint32_t x = 0; x < r->p->n; x++) {
        const Table *t = &tables[x];
        if (t->first_line == 0) continue;
        for (uint32_t i = 0; i < t->grid.rows; i++)
            for (uint32_t k = 0; k < t->grid.columns; k++) TRY(check_point(r, t, i, k));
        r->p->at[x].speed = t->grid;
        found++;
    }
    if (found == 0)
        return err_set(ERR_PARSE, "%s: has no table of set %.40s for one GPU", r->name,
                       wanted_set(r));
    return ERR_OK;
}

Err profile_read_synergy(ProfileReader *r, Csv *c) {
    uint32_t field[TABLE_COLUMNS], fields = c->n;
    Table   *tables = arena_try_new(r->arena, Table, PROFILE_CLASSES);
    if (tables == NULL) return err_set(ERR_LIMIT, "%s: no memory for its tables", r->name);
    TRY(profile_columns(c, table_columns, TABLE_COLUMNS, field));
    for (bool more = true;;) {
        TRY(profile_row(c, fields, &more));
        if (!more) break;
        if (wanted(r, c, field[SET], field[GPUS])) TRY(read_point(r, c, field, tables));
    }
    return take(r, tables);
}

Err profile_read_synergy_meta(ProfileReader *r, Csv *c) {
    uint32_t field[META_COLUMNS], fields = c->n, found = 0, type = 0, x = 0;
    TRY(profile_columns(c, meta_columns, META_COLUMNS, field));
    TRY(profile_type_named(r, "v100", &type));
    for (bool more = true;;) {
        double seconds = 0;
        TRY(profile_row(c, fields, &more));
        if (!more) break;
        if (!wanted(r, c, field[META_SET], field[META_GPUS])) continue;
        TRY(profile_number(c, field[META_TIME], meta_columns[META_TIME], 1e-6, 1e6, &seconds));
        Err e = profile_class(r, c->field[field[META_MODEL]], &x);
        if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
        if (x != PROFILE_NONE) r->p->at[x].iteration_s[type] = seconds;
        found++;
    }
    if (found > 0) return ERR_OK;
    return err_set(ERR_PARSE, "%s: has no model of set %.40s for one GPU", r->name, wanted_set(r));
}
