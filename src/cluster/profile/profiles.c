#include "cluster/profile/profiles.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/err.h"
#include "base/file.h"
#include "cluster/profile/profiles_int.h"

enum { FILE_MOST = 1 << 26, NANO = 1000000000 };

// Model of two jobs on a GPU where no measurement exists: kernels queue when utilizations exceed 1,
// and both contend for GPU memory bandwidth.
static const double gpu_gb_all = 16, memory_drag = 0.3, util_unknown = 0.7;

static char next_letter(const char **s, char stop) {
    while (**s != '\0' && **s != stop && !isalnum((unsigned char)**s)) (*s)++;
    return **s != '\0' && **s != stop ? (char)tolower((unsigned char)*(*s)++) : '\0';
}

static bool same_until(const char *a, const char *b, char stop_b) {
    for (;;) {
        char x = next_letter(&a, '\0'), y = next_letter(&b, stop_b);
        if (x != y) return false;
        if (x == '\0') return true;
    }
}

bool profile_same(const char *a, const char *b) { return same_until(a, b, '\0'); }

static uint32_t find_until(const ClusterProfiles *p, const char *name, char stop) {
    for (uint32_t i = 0; i < p->n; i++)
        if (same_until(p->at[i].name, name, stop)) return i;
    return PROFILE_NONE;
}

static uint32_t find_alias_until(const ClusterProfiles *p, const char *name, char stop) {
    for (uint32_t i = 0; i < p->n; i++)
        for (const char **alias = p->at[i].aliases; alias != NULL && *alias != NULL; alias++)
            if (same_until(*alias, name, stop)) return i;
    return PROFILE_NONE;
}

uint32_t profile_find(const ClusterProfiles *p, const char *name) {
    return find_until(p, name, '\0');
}

uint32_t profile_find_alias(const ClusterProfiles *p, const char *name) {
    return find_alias_until(p, name, '\0');
}

uint32_t profile_known(const ClusterProfiles *p, const char *name) {
    uint32_t i = profile_find(p, name);
    if (i == PROFILE_NONE) i = profile_find_alias(p, name);
    if (i == PROFILE_NONE) i = find_until(p, name, '(');
    return i != PROFILE_NONE ? i : find_alias_until(p, name, '(');
}

uint32_t profile_type(const ClusterProfiles *p, const char *name) {
    for (uint32_t i = 0; i < p->n_types; i++)
        if (profile_same(p->type[i], name)) return i;
    return PROFILE_NONE;
}

static double guess(const ClusterProfile *me, const ClusterProfile *other) {
    double busy = me->gpu_util + other->gpu_util;
    double drag = 1 + memory_drag * me->gpu_memory_util * other->gpu_memory_util;
    if (me->gpu_gb + other->gpu_gb > gpu_gb_all) return 0;
    return 1 / (fmax(1, busy) * drag);
}

void profile_guess_pairs(ClusterProfiles *p, uint32_t class_) {
    for (uint32_t i = 0; i < p->n; i++) {
        p->pair[(size_t)class_ * PROFILE_CLASSES + i] = guess(&p->at[class_], &p->at[i]);
        p->pair[(size_t)i * PROFILE_CLASSES + class_] = guess(&p->at[i], &p->at[class_]);
    }
}

Err profile_class(ProfileReader *r, const char *name, uint32_t *out) {
    ClusterProfiles *p = r->p;
    uint32_t         i = r->o->fold ? profile_known(p, name) : profile_find(p, name);
    const char      *any = name;
    if (next_letter(&any, '\0') == '\0') return err_set(ERR_PARSE, "a class needs a name");
    if (i == PROFILE_NONE && !r->o->fold) {
        if (p->n == PROFILE_CLASSES)
            return err_set(ERR_LIMIT, "'%.40s' would be the class beyond %d; leave some out", name,
                           PROFILE_CLASSES);
        ClusterProfile *c = &p->at[i = p->n++];
        *c = (ClusterProfile){.gpu_util = util_unknown, .gpu_memory_util = util_unknown};
        c->name = arena_str(r->arena, name);
        c->speed = c->spread = (ProfileGrid){1, 1, {1}, {1}, {{1}}};
        profile_guess_pairs(p, i);
    }
    *out = i;
    return ERR_OK;
}

Err profile_type_named(ProfileReader *r, const char *name, uint32_t *out) {
    uint32_t i = profile_type(r->p, name);
    if (i == PROFILE_NONE) {
        if (r->p->n_types == PROFILE_TYPES)
            return err_set(ERR_LIMIT, "'%.40s' would be the type of GPU beyond %d", name,
                           PROFILE_TYPES);
        r->p->type[i = r->p->n_types++] = arena_str(r->arena, name);
    }
    *out = i;
    return ERR_OK;
}

double profile_mean_corun(const ClusterProfiles *p, uint32_t class_) {
    double sum = 0, weights = 0, all = 0;
    for (uint32_t i = 0; i < p->n; i++) all += p->at[i].weight;
    for (uint32_t i = 0; i < p->n; i++) {
        double weight = all > 0 ? p->at[i].weight : 1, pair = profile_pair(p, class_, i);
        if (!(pair > 0) || !(profile_pair(p, i, class_) > 0)) continue;
        sum += weight * pair;
        weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
}

static Err scale(ClusterProfile *c, double share_cores, double share_gb) {
    double one = profile_speed(c, share_cores, share_gb);
    if (!(one > 0))
        return err_set(ERR_CONFIG, "'%.60s' does not run at all with %g cores and %g GB a GPU",
                       c->name, share_cores, share_gb);
    for (uint32_t i = 0; one != 1 && i < c->speed.rows; i++)
        for (uint32_t k = 0; k < c->speed.columns; k++) c->speed.at[i][k] /= one;
    return ERR_OK;
}

Err profile_set_share(ClusterProfiles *p, double share_cores, double share_gb,
                      const AllocLevelParams *rule) {
    AllocLevelParams usual = ALLOC_LEVEL_PARAMS;
    CHECK(share_cores > 0 && share_gb > 0);
    for (uint32_t i = 0; i < p->n; i++)
        if (!(profile_speed(&p->at[i], share_cores, share_gb) > 0))
            return scale(&p->at[i], share_cores, share_gb);
    for (uint32_t i = 0; i < p->n; i++) {
        TRY(scale(&p->at[i], share_cores, share_gb));
        p->at[i].levels =
            alloc_levels_build(&p->at[i].speed, share_cores, share_gb, profile_mean_corun(p, i),
                               rule != NULL ? rule : &usual);
    }
    p->share_cores = share_cores;
    p->share_gb = share_gb;
    return ERR_OK;
}

Err profile_columns(const Csv *c, const char *const *names, uint32_t n, uint32_t *out) {
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = 0;
        while (i < c->n && strcmp(c->field[i], names[k]) != 0) i++;
        if (i == c->n) return err_set(ERR_PARSE, "%s:1: lacks the column %s", c->name, names[k]);
        out[k] = i;
    }
    return ERR_OK;
}

Err profile_row(Csv *c, uint32_t fields, bool *more) {
    do {
        TRY(csv_next(c, more));
        if (!*more || (c->n == 1 && c->field[0][0] == '\0' && csv_blank(c))) {
            *more = false;
            return ERR_OK;
        }
    } while (c->field[0][0] == '#');
    if (c->n != fields)
        return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %u", c->name, c->line,
                       c->n, fields);
    return ERR_OK;
}

Err profile_number(const Csv *c, uint32_t field, const char *what, double lo, double hi,
                   double *out) {
    int64_t      v = 0;
    DecimalError f = decimal_read(c->field[field], NANO, INT64_MAX, &v);
    double       x = (double)v / NANO;
    if (f == DECIMAL_OK && x >= lo && x <= hi) {
        *out = x;
        return ERR_OK;
    }
    return err_set(ERR_PARSE, "%s:%zu: %s: '%.40s' %s; give one from %g to %g", c->name, c->line,
                   what, c->field[field],
                   f == DECIMAL_OK ? "is out of range" : decimal_error_text(f), lo, hi);
}

static const struct Kind {
    const char *first, *other;  // columns that identify the format
    Err (*read)(ProfileReader *, Csv *);
} kinds[] = {
    {"class", "gpu_s", profile_read_own},
    {"set", "norm_throughput", profile_read_synergy},
    {"set", "iter_time_s", profile_read_synergy_meta},
    {"gpu_type", "steps_per_s", profile_read_gavel},
    {"gpu_type", "norm1", profile_read_gavel_pairs},
};

static bool has(const Csv *c, const char *name) {
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->field[i], name) == 0) return true;
    return false;
}

static Err read_csv(ProfileReader *r, char *text, size_t len) {
    Csv  c;
    bool more = false;
    TRY(csv_open(&c, r->name, text, len, ',', true));
    do TRY(csv_next(&c, &more));
    while (more && c.field[0][0] == '#');
    for (size_t i = 0; more && i < sizeof kinds / sizeof *kinds; i++)
        if (has(&c, kinds[i].first) && has(&c, kinds[i].other)) return kinds[i].read(r, &c);
    return err_set(ERR_PARSE,
                   "%s:1: no profiles; it begins neither like ours (class,...,gpu_s,...) nor like "
                   "Synergy's, Gavel's or Chronus'",
                   r->name);
}

// text NULL: a folder.
static Err read_text(ProfileReader *r, char *text, size_t len) {
    size_t at = 0;
    while (at < len && isspace((unsigned char)text[at])) at++;
    if (text == NULL)
        TRY(profile_read_pollux(r, r->name));
    else if (at < len && text[at] == '{')
        TRY(profile_read_json(r, text, len));
    else
        TRY(read_csv(r, text, len));
    Err e = profile_set_share(r->p, r->p->share_cores, r->p->share_gb, NULL);
    return e == ERR_OK ? e : err_add(e, "%s", r->name);
}

Err profile_empty(Arena *a, ClusterProfiles *out) {
    ClusterProfiles p = {.share_cores = 3, .share_gb = 62.5};
    p.at = arena_try_new(a, ClusterProfile, PROFILE_CLASSES);
    p.pair = arena_try_new(a, double, (size_t)PROFILE_CLASSES *PROFILE_CLASSES);
    if (p.at == NULL || p.pair == NULL) return err_set(ERR_LIMIT, "no memory for profiles");
    *out = p;
    return ERR_OK;
}

// Works on a copy: a file with an error changes nothing.
static Err add(ClusterProfiles *p, const char *name, char *text, size_t len,
               const ProfileOptions *o, Arena *a) {
    static const ProfileOptions usual = {0};
    ClusterProfiles             next = *p, fresh;
    ProfileReader               r = {&next, name, o != NULL ? o : &usual, a};
    TRY(profile_empty(a, &fresh));
    next.at = fresh.at;
    next.pair = fresh.pair;
    memcpy(next.at, p->at, sizeof *p->at * p->n);
    memcpy(next.pair, p->pair, sizeof *p->pair * PROFILE_CLASSES * PROFILE_CLASSES);
    TRY(read_text(&r, text, len));
    *p = next;
    return ERR_OK;
}

Err profile_add_text(ClusterProfiles *p, const char *name, const char *text, size_t len,
                     const ProfileOptions *o, Arena *a) {
    char *copy = arena_try(a, len + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu bytes", name, len);
    if (len > 0) memcpy(copy, text, len);
    return add(p, name, copy, len, o, a);
}

Err profile_add(ClusterProfiles *p, const char *path, const ProfileOptions *o, Arena *a) {
    char  *text = NULL;
    size_t len = 0;
    if (file_is_folder(path)) return add(p, path, NULL, 0, o, a);
    TRY(file_read(path, FILE_MOST, a, &text, &len));
    return profile_add_text(p, path, text, len, o, a);
}

Err profile_load(const char *what, Arena *a, ClusterProfiles *out) {
    ClusterProfiles p;
    const char     *name = what != NULL ? what : "default";
    TRY(profile_empty(a, &p));
    const ProfileFile *f = profile_files;
    while (f->name != NULL && strcmp(f->name, name) != 0) f++;
    if (f->name == NULL)
        TRY(profile_add(&p, name, NULL, a));
    else
        TRY(profile_add_text(&p, f->name, (const char *)f->bytes, f->len, NULL, a));
    *out = p;
    return ERR_OK;
}
