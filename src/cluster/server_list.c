#include "cluster/server_list.h"

#include <string.h>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/file.h"

enum { FILE_MOST = 1 << 28, FIELDS = 5, GPUS_MAX = 1024, CORES_GPU = 3000, MIB_GPU = 64000 };

static const char *const node_columns[FIELDS] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};
static const char *const spec_columns[FIELDS] = {"num_switch", "num_node_p_switch",
                                                 "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"};

static bool has_columns(const Csv *c, const char *const *names) {
    if (c->n != FIELDS) return false;
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(c->field[i], names[i]) != 0) return false;
    return true;
}

static Err number(const Csv *c, int field, const char *what, int64_t most, uint32_t *out) {
    int64_t      v = 0;
    DecimalError f = decimal_read(c->field[field], 1, most, &v);
    if (f != DECIMAL_OK)
        return err_set(ERR_PARSE, "%s:%zu: %s: '%.40s' %s; give one up to %lld", c->name, c->line,
                       what, c->field[field], decimal_error_text(f), (long long)most);
    *out = (uint32_t)v;
    return ERR_OK;
}

// The next row; *more is false after the last one.
static Err next(Csv *c, bool *more) {
    TRY(csv_next(c, more));
    if (*more && c->n == 1 && c->field[0][0] == '\0' && csv_blank(c)) *more = false;
    if (*more && c->n != FIELDS)
        return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %d", c->name, c->line,
                       c->n, FIELDS);
    return ERR_OK;
}

static Err read_nodes(Csv *c, size_t lines, Arena *a, ServerList *l) {
    l->racks = 1;
    if (lines > SERVERS_MAX)
        return err_set(ERR_LIMIT, "%s: more than %d servers", c->name, SERVERS_MAX);
    l->at = arena_try_new(a, ServerSpec, lines);
    if (l->at == NULL) return err_set(ERR_LIMIT, "%s: no memory for its servers", c->name);
    for (bool more = true;;) {
        ServerSpec *s = &l->at[l->n];
        TRY(next(c, &more));
        if (!more) break;
        *s = (ServerSpec){.name = c->field[0], .gpu_type = c->field[4]};
        TRY(number(c, 1, node_columns[1], INT32_MAX, &s->cores_milli));
        TRY(number(c, 2, node_columns[2], INT32_MAX, &s->memory_mib));
        TRY(number(c, 3, node_columns[3], GPUS_MAX, &s->gpus));
        l->gpus += s->gpus;
        l->n++;
    }
    return ERR_OK;
}

static Err read_spec(Csv *c, Arena *a, ServerList *l) {
    bool       more = false;
    uint32_t   racks = 0, per_rack = 0, cores = 0, memory = 0;
    ServerSpec like = {.gpu_type = ""};
    TRY(next(c, &more));
    if (!more) return err_set(ERR_PARSE, "%s: has a header and no cluster", c->name);
    TRY(number(c, 0, spec_columns[0], 65536, &racks));
    TRY(number(c, 1, spec_columns[1], 65536, &per_rack));
    TRY(number(c, 2, spec_columns[2], GPUS_MAX, &like.gpus));
    TRY(number(c, 3, spec_columns[3], 1000000, &cores));
    TRY(number(c, 4, spec_columns[4], 2000000, &memory));
    if ((uint64_t)racks * per_rack > SERVERS_MAX)
        return err_set(ERR_LIMIT, "%s: more than %d servers", c->name, SERVERS_MAX);
    like.cores_milli = cores * 1000;
    like.memory_mib = memory * 1024;
    TRY(server_list_equal(racks * per_rack, &like, a, l));
    for (uint32_t i = 0; i < l->n; i++) l->at[i].rack = i / per_rack;
    l->racks = racks;
    return ERR_OK;
}

static Err parse(const char *name, char *text, size_t len, Arena *a, ServerList *out) {
    Csv        c;
    bool       more = false;
    size_t     lines = 1;
    ServerList l = {0};
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    TRY(csv_open(&c, name, text, len, ',', true));
    TRY(csv_next(&c, &more));
    if (has_columns(&c, node_columns))
        TRY(read_nodes(&c, lines, a, &l));
    else if (has_columns(&c, spec_columns))
        TRY(read_spec(&c, a, &l));
    else
        return err_set(ERR_PARSE,
                       "%s:1: no list of servers; columns are sn,cpu_milli,memory_mib,"
                       "gpu,model or num_switch,num_node_p_switch,...",
                       name);
    if (l.n == 0) return err_set(ERR_PARSE, "%s: has no servers", name);
    *out = l;
    return ERR_OK;
}

Err server_list_parse(const char *name, const char *text, size_t len, Arena *a, ServerList *out) {
    char *copy = arena_try(a, len + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu bytes", name, len);
    if (len > 0) memcpy(copy, text, len);
    return parse(name, copy, len, a, out);
}

Err server_list_read(const char *path, Arena *a, ServerList *out) {
    char  *text = NULL;
    size_t len = 0;
    TRY(file_read(path, FILE_MOST, a, &text, &len));
    return parse(path, text, len, a, out);
}

Err server_list_equal(uint32_t n, const ServerSpec *like, Arena *a, ServerList *out) {
    ServerList l = {.n = n, .racks = 1, .gpus = (uint64_t)n * like->gpus};
    l.at = arena_try_new(a, ServerSpec, n);
    if (n == 0 || n > SERVERS_MAX || l.at == NULL)
        return err_set(ERR_ARG, "%u servers; give 1 to %d", n, SERVERS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        char *name = arena_try(a, 16, 1, 1);
        if (name == NULL) return err_set(ERR_LIMIT, "no memory for %u servers", n);
        (void)snprintf(name, 16, "s%u", i);
        l.at[i] = *like;
        l.at[i].name = name;
        if (like->gpu_type == NULL) l.at[i].gpu_type = "";
        if (like->cores_milli == 0) l.at[i].cores_milli = like->gpus * CORES_GPU;
        if (like->memory_mib == 0) l.at[i].memory_mib = like->gpus * MIB_GPU;
    }
    *out = l;
    return ERR_OK;
}
