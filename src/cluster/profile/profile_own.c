// Our own profiles: a few numbers per class, from which tables are computed by the model of
// docs/profiles.md. Loading, storage reads and computation overlap; the slowest sets the rate.
#include <math.h>
#include <string.h>

#include "cluster/profile/profiles_int.h"

#define NUMBERS(X)                                                                                 \
    X(weight, 0, 1e6)                                                                              \
    X(gpu_s, 1e-4, 1e4)                                                                            \
    X(core_s, 0, 1e5)                                                                              \
    X(storage_s, 0, 1e4)                                                                           \
    X(resident_gb, 0, 65536)                                                                       \
    X(data_gb, 0, 65536)                                                                           \
    X(network_s, 0, 1e4)                                                                           \
    X(gpu_busy, 0, 1)                                                                              \
    X(gpu_memory_busy, 0, 1)                                                                       \
    X(gpu_gb, 0, 1024)                                                                             \
    X(restart_s, 0, 1e5)

typedef struct Needs {
#define X(name, lo, hi) double name;
    NUMBERS(X)
#undef X
    double type_speed[PROFILE_TYPES];  // 0: unknown
} Needs;

static const char *const columns[] = {"class", "aliases",
#define X(name, lo, hi) #name,
                                      NUMBERS(X)
#undef X
};
enum { COLUMNS = sizeof columns / sizeof *columns };

typedef struct Header {
    uint32_t field[COLUMNS];
    uint32_t fields;
    uint32_t type_of[CSV_FIELDS];  // GPU type of a speed_TYPE column; PROFILE_NONE: another column
} Header;

static const double cores_axis[] = {0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
static const double gb_axis[] = {8, 16, 32, 62.5, 96, 128, 192, 256};
static const double server_axis[] = {1, 2, 4, 8, 16, 32, 64};
enum {
    CORES = sizeof cores_axis / sizeof *cores_axis,
    GBS = sizeof gb_axis / sizeof *gb_axis,
    SERVERS = sizeof server_axis / sizeof *server_axis
};

// Fraction of the data that is not cached in memory.
static double misses(const Needs *n, double gb) {
    double cache = fmax(0, gb - n->resident_gb);
    return n->data_gb > cache ? 1 - cache / n->data_gb : 0;
}

// Seconds of an iteration on one GPU. Below its resident memory it pages.
static double iteration(const Needs *n, double gpu_speed, double cores, double gb) {
    double lacks = gb < n->resident_gb ? n->resident_gb / gb : 1;
    double compute_s = fmax(n->gpu_s / gpu_speed, n->core_s / cores);
    return fmax(compute_s, n->storage_s * misses(n, gb)) * lacks * lacks;
}

static ProfileGrid speeds(const Needs *n, double usual_s) {
    ProfileGrid g = {.rows = CORES, .columns = GBS};
    memcpy(g.row, cores_axis, sizeof cores_axis);
    memcpy(g.column, gb_axis, sizeof gb_axis);
    for (uint32_t i = 0; i < CORES; i++)
        for (uint32_t k = 0; k < GBS; k++)
            g.at[i][k] = usual_s / iteration(n, 1, cores_axis[i], gb_axis[k]);
    return g;
}

// Each of n servers sends 2 (n - 1) / n times the gradients, which take network_s to send once.
static ProfileGrid spreads(const Needs *n, double usual_s) {
    ProfileGrid g = {.rows = 1, .columns = SERVERS, .row = {1}};
    memcpy(g.column, server_axis, sizeof server_axis);
    for (uint32_t k = 0; k < SERVERS; k++) {
        double sends = n->network_s * 2 * (server_axis[k] - 1) / server_axis[k];
        g.at[0][k] = usual_s / (usual_s + sends);
    }
    return g;
}

static void take(ClusterProfiles *p, uint32_t x, const Needs *n) {
    ClusterProfile *c = &p->at[x];
    double          cores = p->share_cores, gb = p->share_gb;
    double          usual_s = iteration(n, 1, cores, gb);
    c->speed = speeds(n, usual_s);
    c->spread = spreads(n, usual_s);
    c->restart_s = n->restart_s;
    c->gpu_gb = n->gpu_gb;
    c->gpu_util = n->gpu_busy;
    c->gpu_memory_util = n->gpu_memory_busy;
    c->weight = n->weight;
    c->stage_s[PROFILE_CPU] = n->core_s / cores;
    c->stage_s[PROFILE_STORAGE] = n->storage_s * misses(n, gb);
    c->stage_s[PROFILE_GPU] = n->gpu_s;
    c->stage_s[PROFILE_NETWORK] = n->network_s;
    for (uint32_t t = 0; t < p->n_types; t++)
        c->iteration_s[t] = n->type_speed[t] > 0 ? iteration(n, n->type_speed[t], cores, gb) : 0;
    profile_guess_pairs(p, x);
}

static Err read_needs(const Csv *c, const Header *h, Needs *n) {
    const uint32_t *field = h->field + 2;
#define X(name, lo, hi) TRY(profile_number(c, *field++, #name, lo, hi, &n->name));
    NUMBERS(X)
#undef X
    for (uint32_t i = 0; i < h->fields; i++) {
        uint32_t t = h->type_of[i];
        if (t == PROFILE_NONE || c->field[i][0] == '\0') continue;
        TRY(profile_number(c, i, "speed by type", 1e-3, 1e3, &n->type_speed[t]));
    }
    return ERR_OK;
}

// "resnet50|resnet-50v2"
static const char **read_aliases(const char *text, Arena *a) {
    uint32_t n = 1, k = 0;
    for (const char *s = text; *s != '\0'; s++) n += *s == '|';
    const char **out = arena_new(a, const char *, n + 1);
    for (size_t len = 0; *text != '\0'; text += len + (text[len] == '|')) {
        len = strcspn(text, "|");
        if (len > 0) out[k++] = arena_printf(a, "%.*s", (int)len, text);
    }
    return out;
}

static Err read_class(ProfileReader *r, const Csv *c, const Header *h, bool *seen) {
    Needs    n = {0};
    uint32_t x = 0;
    TRY(read_needs(c, h, &n));
    Err e = profile_class(r, c->field[h->field[0]], &x);
    if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
    if (x == PROFILE_NONE) return ERR_OK;
    if (seen[x])
        return err_set(ERR_PARSE, "%s:%zu: class '%.40s' for the second time", c->name, c->line,
                       c->field[h->field[0]]);
    seen[x] = true;
    r->p->at[x].aliases = read_aliases(c->field[h->field[1]], r->arena);
    take(r->p, x, &n);
    return ERR_OK;
}

static bool known(const char *name) {
    for (uint32_t k = 0; k < COLUMNS; k++)
        if (strcmp(columns[k], name) == 0) return true;
    return false;
}

static Err read_header(ProfileReader *r, const Csv *c, Header *h) {
    TRY(profile_columns(c, columns, COLUMNS, h->field));
    h->fields = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        const char *name = c->field[i];
        h->type_of[i] = PROFILE_NONE;
        if (known(name)) continue;
        if (strncmp(name, "speed_", 6) != 0 || name[6] == '\0')
            return err_set(ERR_PARSE,
                           "%s:%zu: there is no column '%.40s'; speeds by type of GPU "
                           "are named like speed_v100",
                           c->name, c->line, name);
        Err e = profile_type_named(r, name + 6, &h->type_of[i]);
        if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
    }
    return ERR_OK;
}

Err profile_read_own(ProfileReader *r, Csv *c) {
    Header   h;
    bool     seen[PROFILE_CLASSES] = {false};
    uint32_t found = 0;
    TRY(read_header(r, c, &h));
    for (bool more = true;; found++) {
        TRY(profile_row(c, h.fields, &more));
        if (!more) break;
        TRY(read_class(r, c, &h, seen));
    }
    if (found == 0) return err_set(ERR_PARSE, "%s: has a header and no classes", r->name);
    return ERR_OK;
}
