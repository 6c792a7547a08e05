#include "estimator/estimator.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

Err estimator_init(Estimator *e, const HypothesisTable *table, const EstimatorParams *params,
                   Arena *a) {
    *e = (Estimator){.has_profiles = table != NULL};
    TRY(duration_history_init(&e->durations, &params->durations, a));
    if (table == NULL) return ERR_OK;
    return profile_posterior_init(&e->profiles, table, &params->profiles, a);
}

// SQLite keeps 63 bits and a sign; 0 stays "unknown".
uint64_t estimator_name(const char *name) {
    uint64_t h = hash_fnv(HASH_FNV_START, name, strlen(name)) >> 1;
    return name[0] == '\0' ? 0 : h != 0 ? h : 1;
}

// The file is untrusted input: names and numbers are checked.
enum { BUSY_MS = 3000 };

enum { APPLICATION_ID = 1668249201, VERSION = 2 };  // in the file's header

static const char misfit_row[] = "(misfit)";  // in place of a hypothesis
static const char make[] =
    "PRAGMA application_id = 1668249201; PRAGMA user_version = 2;"
    "CREATE TABLE IF NOT EXISTS duration(age INTEGER PRIMARY KEY, tenant INTEGER, name INTEGER,"
    " gpus INTEGER, work_s REAL);"
    "CREATE TABLE IF NOT EXISTS belief(kind TEXT, key INTEGER, hypothesis TEXT, value REAL,"
    " n INTEGER, PRIMARY KEY(kind, key, hypothesis));"
    "DELETE FROM duration; DELETE FROM belief";
static const char put_duration[] = "INSERT INTO duration VALUES(?1, ?2, ?3, ?4, ?5)";
static const char put_belief[] = "INSERT INTO belief VALUES(?1, ?2, ?3, ?4, ?5)";
static const char get_durations[] =
    "SELECT tenant, name, gpus, work_s FROM duration ORDER BY age DESC";
static const char get_beliefs[] = "SELECT kind, key, hypothesis, value, n FROM belief";

static Err failed(sqlite3 *db, const char *doing, const char *path) {
    return err_set(ERR_IO, "%s: cannot %s the estimator's records: %s; name another file", path,
                   doing, sqlite3_errmsg(db));
}

static int step_once(sqlite3_stmt *q) {
    int code = sqlite3_step(q);
    (void)sqlite3_reset(q);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int save_durations(sqlite3 *db, const DurationHistory *h) {
    sqlite3_stmt         *q = NULL;
    const DurationRecord *r;
    int                   code = sqlite3_prepare_v2(db, put_duration, -1, &q, NULL);
    for (uint64_t age = 0; code == SQLITE_OK && (r = duration_history_at(h, age)) != NULL; age++) {
        (void)sqlite3_bind_int64(q, 1, (int64_t)age);
        (void)sqlite3_bind_int64(q, 2, (int64_t)r->traits.tenant);
        (void)sqlite3_bind_int64(q, 3, (int64_t)r->traits.name);
        (void)sqlite3_bind_int64(q, 4, r->traits.gpus);
        (void)sqlite3_bind_double(q, 5, r->work_s);
        code = step_once(q);
    }
    (void)sqlite3_finalize(q);
    return code;
}

static int save_group(sqlite3_stmt *q, const HypothesisTable *t, const char *kind,
                      const PosteriorGroup *g) {
    int code = SQLITE_OK;
    for (uint32_t i = 0; code == SQLITE_OK && i <= t->n; i++) {
        const char *name = i < t->n ? t->profiles->at[i].name : misfit_row;
        (void)sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(q, 2, (int64_t)g->key);
        (void)sqlite3_bind_text(q, 3, name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(q, 4, i < t->n ? g->record.log_like[i] : g->record.misfit);
        (void)sqlite3_bind_int64(q, 5, g->record.n);
        code = step_once(q);
    }
    return code;
}

static int save_beliefs(sqlite3 *db, const ProfilePosterior *p) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(db, put_belief, -1, &q, NULL);
    for (uint32_t i = 0; code == SQLITE_OK && i < POSTERIOR_GROUPS; i++) {
        if (p->names[i].key != 0) code = save_group(q, &p->table, "name", &p->names[i]);
        if (code == SQLITE_OK && p->tenants[i].key != 0)
            code = save_group(q, &p->table, "tenant", &p->tenants[i]);
    }
    (void)sqlite3_finalize(q);
    return code;
}

static int save_all(sqlite3 *db, const Estimator *e) {
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_exec(db, make, NULL, NULL, NULL);
    if (code == SQLITE_OK) code = save_durations(db, &e->durations);
    if (code == SQLITE_OK && e->has_profiles) code = save_beliefs(db, &e->profiles);
    if (code == SQLITE_OK) code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return code;
}

static Err open_file(const char *path, int flags, sqlite3 **db) {
    int code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) (void)sqlite3_busy_timeout(*db, BUSY_MS);
    return code == SQLITE_OK ? ERR_OK : failed(*db, "open", path);
}

static int64_t number_of(sqlite3 *db, const char *pragma) {
    sqlite3_stmt *q = NULL;
    int64_t       n = -1;
    if (sqlite3_prepare_v2(db, pragma, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        n = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    return n;
}

// Neither reads nor overwrites a database of another program. An empty one may be written.
static Err check_owner(sqlite3 *db, const char *path, bool may_be_empty) {
    int64_t tables = number_of(db, "SELECT count(*) FROM sqlite_master");
    int64_t id = number_of(db, "PRAGMA application_id");
    if (tables < 0 || id < 0) return failed(db, "read", path);
    if (may_be_empty && tables == 0 && id == 0) return ERR_OK;
    if (id != APPLICATION_ID)
        return err_set(ERR_INVALID,
                       "%s: no records of an estimator, but another database; name "
                       "another file",
                       path);
    int64_t version = number_of(db, "PRAGMA user_version");
    if (version != VERSION)
        return err_set(ERR_INVALID,
                       "%s: records of version %lld, this program reads %d; remove "
                       "the file or name another",
                       path, (long long)version, VERSION);
    return ERR_OK;
}

Err estimator_save(const Estimator *e, const char *path) {
    sqlite3 *db = NULL;
    Err      error = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db);
    if (error == ERR_OK) error = check_owner(db, path, true);
    if (error == ERR_OK && save_all(db, e) != SQLITE_OK) error = failed(db, "write", path);
    (void)sqlite3_close_v2(db);
    return error;
}

static int load_durations(sqlite3 *db, DurationHistory *h) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(db, get_durations, -1, &q, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
        int64_t   gpus = sqlite3_column_int64(q, 2);
        double    work_s = sqlite3_column_double(q, 3);
        JobTraits t = {(uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
                       (uint32_t)gpus};
        code = SQLITE_OK;
        if (gpus >= 0 && gpus <= UINT32_MAX && isfinite(work_s) && work_s >= 0 && work_s < 1e12)
            duration_history_end(h, &t, work_s);
    }
    (void)sqlite3_finalize(q);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static uint32_t hypothesis(const HypothesisTable *t, const char *name) {
    for (uint32_t i = 0; name != NULL && i < t->n; i++)
        if (strcmp(t->profiles->at[i].name, name) == 0) return i;
    return PROFILE_NONE;
}

static void load_belief(sqlite3_stmt *q, ProfilePosterior *p) {
    const char *kind = (const char *)sqlite3_column_text(q, 0);
    uint64_t    key = (uint64_t)sqlite3_column_int64(q, 1);
    const char *name = (const char *)sqlite3_column_text(q, 2);
    bool        misfit = name != NULL && strcmp(name, misfit_row) == 0;
    uint32_t    i = misfit ? 0 : hypothesis(&p->table, name);
    double      value = sqlite3_column_double(q, 3);
    int64_t     n = sqlite3_column_int64(q, 4);
    bool        named = kind != NULL && strcmp(kind, "name") == 0;
    if (kind == NULL || i == PROFILE_NONE || !isfinite(value) || n < 0 || n > INT32_MAX) return;
    PosteriorRecord *r = profile_posterior_group(named ? p->names : p->tenants, key);
    if (r == NULL || ((!named || misfit) && value < 0)) return;
    if (misfit)
        r->misfit = value;
    else
        r->log_like[i] = value;
    r->n = (uint32_t)n;
}

static int load_beliefs(sqlite3 *db, ProfilePosterior *p) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(db, get_beliefs, -1, &q, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
        load_belief(q, p);
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(q);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

Err estimator_load(Estimator *e, const char *path) {
    sqlite3 *db = NULL;
    if (access(path, F_OK) != 0) return ERR_OK;
    Err error = open_file(path, SQLITE_OPEN_READONLY, &db);
    if (error == ERR_OK) error = check_owner(db, path, false);
    int code = error == ERR_OK ? load_durations(db, &e->durations) : SQLITE_OK;
    if (error == ERR_OK && code == SQLITE_OK && e->has_profiles)
        code = load_beliefs(db, &e->profiles);
    if (code != SQLITE_OK) error = failed(db, "read", path);
    (void)sqlite3_close_v2(db);
    return error;
}
