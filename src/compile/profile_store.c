#include "compile/profile_store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "compile/profile_store_file.h"
#include "kernel/isa.h"

// A rollback journal rather than WAL: that also works in a read-only directory.
#define SETTINGS                                                                                   \
    "PRAGMA journal_mode = DELETE; PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON"
#define NAME "profiles-1.db"
#define KEPT "8"  // kernel builds kept per machine

enum { BUSY_MS = 3000, WRITE_MS = 15000 };  // waits for other processes: opening, writing

static const char find_profile[] = "SELECT record FROM profile JOIN build ON id = build"
                                   " WHERE machine = ?1 AND kernels = ?2 AND layer = ?3";
static const char add_build[] = "INSERT OR IGNORE INTO build(machine, kernels) VALUES(?1, ?2)";
static const char drop_builds[] =
    "DELETE FROM build WHERE machine = ?1 AND id NOT IN"
    " (SELECT id FROM build WHERE machine = ?1 ORDER BY id DESC LIMIT " KEPT ")";
static const char drop_profiles[] = "DELETE FROM profile WHERE build NOT IN (SELECT id FROM build)";
static const char add_profile[] = "INSERT OR REPLACE INTO profile SELECT id, ?3, ?4 FROM build"
                                  " WHERE machine = ?1 AND kernels = ?2";

static bool is_damage(int code) {
    code &= 0xff;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_MISMATCH ||
           code == SQLITE_ERROR;  // no such table or column
}

static void set_error(ProfileStore *s, const char *doing, const char *why) {
    (void)snprintf(s->why, sizeof s->why, "cannot %s the profile store %.200s: %.200s", doing,
                   s->path, why);
}

static void close_database(ProfileStore *s) {
    (void)sqlite3_close_v2(s->db);
    s->db = NULL;
}

static int query_int(ProfileStore *s, const char *sql, int64_t *out) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(q);
    if (code == SQLITE_ROW) *out = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int check_tables(ProfileStore *s) {
    int64_t tables = 0, owner = 0;
    int     code = query_int(s, "SELECT count(*) FROM sqlite_master", &tables);
    if (code == SQLITE_OK) code = query_int(s, "PRAGMA application_id", &owner);
    if (code != SQLITE_OK) return code;
    return tables > 0 && owner == STORE_OWNER ? SQLITE_OK : SQLITE_NOTADB;
}

// "ok" or the first fault in the pages of the file.
static int check_pages(ProfileStore *s) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(q);
    if (code == SQLITE_ROW)
        code =
            strcmp((const char *)sqlite3_column_text(q, 0), "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
    (void)sqlite3_finalize(q);
    return code;
}

static void set_failure(ProfileStore *s, const char *doing, int code) {
    set_error(s, doing,
              is_damage(code) ? "it is damaged and is left as it is; remove it, or name another "
                                "file"
                              : sqlite3_errmsg(s->db));
}

// Damage found while the store is in use ends its use; the file is left as it is.
static void leave_damaged(ProfileStore *s, const char *doing, int code) {
    if (!is_damage(code)) return;
    set_failure(s, doing, code);
    close_database(s);
}

static int open_database(ProfileStore *s, int flags) {
    int code = sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        s->read_only = sqlite3_db_readonly(s->db, "main") == 1;
        (void)sqlite3_busy_timeout(s->db, BUSY_MS);
        code = sqlite3_exec(s->db, SETTINGS, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) code = check_tables(s);
    if (code == SQLITE_OK) code = check_pages(s);
    if (code == SQLITE_OK) (void)sqlite3_busy_timeout(s->db, WRITE_MS);
    if (code == SQLITE_OK) return code;
    set_failure(s, "use", code);
    close_database(s);
    return code;
}

static Err default_path(ProfileStore *s) {
    Arena       a = {0};
    const char *dir = NULL;
    TRY(arena_init(&a, 1 << 20));
    Err e = file_cache_dir(&a, &dir);
    int n = e == ERR_OK ? snprintf(s->path, sizeof s->path, "%s/" NAME, dir) : 0;
    if ((size_t)n >= sizeof s->path)
        e = err_set(ERR_LIMIT, "the cache directory's path is too long");
    arena_finish(&a);
    return e;
}

static Err choose_path(ProfileStore *s, const char *path) {
    if (path == NULL) return default_path(s);
    if (strlen(path) >= sizeof s->path) return err_set(ERR_LIMIT, "the path is too long");
    memcpy(s->path, path, strlen(path) + 1);
    return ERR_OK;
}

static void name_machine(ProfileStore *s, const Cpu *c, const Isa *isa) {
    uint64_t   features = c->features;
    CacheSizes sizes = {c->l1d_bytes, c->l2_bytes, c->l3_bytes};
    (void)snprintf(s->machine, sizeof s->machine, "%s, features %llx, caches %zu %zu %zu, %s",
                   c->model, (unsigned long long)features, sizes.l1, sizes.l2, sizes.l3, isa->name);
    (void)snprintf(s->kernels, sizeof s->kernels, "%s", kernel_build_id());
}

void profile_store_open(ProfileStore *s, const char *path, const Cpu *cpu, const Isa *isa) {
    *s = (ProfileStore){0};
    name_machine(s, cpu, isa);
    if (choose_path(s, path) != ERR_OK || profile_store_ensure(s->path) != ERR_OK) {
        (void)snprintf(s->why, sizeof s->why, "no profile store: %.400s", err_why());
        return;
    }
    (void)open_database(s, SQLITE_OPEN_READWRITE);
}

Err profile_store_check(const char *path) {
    ProfileStore s = {0};
    bool         there = false;
    TRY(choose_path(&s, path));
    TRY(profile_store_recognise(s.path, &there));
    if (!there) return ERR_OK;
    int code = open_database(&s, SQLITE_OPEN_READONLY);
    close_database(&s);
    return is_damage(code) ? err_set(ERR_CONFIG, "%s", s.why) : ERR_OK;
}

void profile_store_close(ProfileStore *s) { close_database(s); }

// Executes one statement. Parameters, where present: ?1 machine, ?2 kernels, ?3 layer, ?4 record.
static int run(ProfileStore *s, const char *sql, const char *layer, const uint8_t *record,
               size_t len) {
    sqlite3_stmt *q = NULL;
    int           code = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    if (code != SQLITE_OK) return code;
    int n = sqlite3_bind_parameter_count(q);
    if (n >= 1) (void)sqlite3_bind_text(q, 1, s->machine, -1, SQLITE_STATIC);
    if (n >= 2) (void)sqlite3_bind_text(q, 2, s->kernels, -1, SQLITE_STATIC);
    if (n >= 3) (void)sqlite3_bind_text(q, 3, layer, -1, SQLITE_STATIC);
    if (n >= 4) (void)sqlite3_bind_blob64(q, 4, record, len, SQLITE_STATIC);
    code = sqlite3_step(q);
    (void)sqlite3_finalize(q);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int put_record(ProfileStore *s, const char *layer, const uint8_t *record, size_t len) {
    int code = run(s, "BEGIN IMMEDIATE", NULL, NULL, 0);
    if (code != SQLITE_OK) return code;
    code = run(s, add_build, NULL, NULL, 0);
    bool new = code == SQLITE_OK &&sqlite3_changes(s->db) > 0;
    if (new) code = run(s, drop_builds, NULL, NULL, 0);
    if (new &&code == SQLITE_OK) code = run(s, drop_profiles, NULL, NULL, 0);
    if (code == SQLITE_OK) code = run(s, add_profile, layer, record, len);
    if (code == SQLITE_OK) code = run(s, "COMMIT", NULL, NULL, 0);
    if (code != SQLITE_OK) {
        set_error(s, "write", sqlite3_errmsg(s->db));
        if (sqlite3_get_autocommit(s->db) == 0) (void)run(s, "ROLLBACK", NULL, NULL, 0);
    }
    return code;
}

bool profile_store_put(ProfileStore *s, const char *layer, const LayerProfile *p) {
    Arena    a = {0};
    uint8_t *record = NULL;
    size_t   len = 0;
    if (s->db == NULL || s->read_only) return false;
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) return false;
    bool ok = layer_profile_encode(p, &a, &record, &len) == ERR_OK;
    int  code = ok ? put_record(s, layer, record, len) : SQLITE_NOMEM;
    leave_damaged(s, "write", code);
    arena_finish(&a);
    return code == SQLITE_OK;
}

static int get_record(ProfileStore *s, sqlite3_stmt *q, const char *layer, Arena *a,
                      LayerProfile *out) {
    (void)sqlite3_bind_text(q, 1, s->machine, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(q, 2, s->kernels, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(q, 3, layer, -1, SQLITE_STATIC);
    int code = sqlite3_step(q);
    if (code != SQLITE_ROW) return code;
    const uint8_t *record = sqlite3_column_blob(q, 0);
    size_t         len = (size_t)sqlite3_column_bytes(q, 0);
    return layer_profile_decode(record, len, a, out) ? SQLITE_ROW : SQLITE_DONE;
}

bool profile_store_get(ProfileStore *s, const char *layer, Arena *a, LayerProfile *out) {
    sqlite3_stmt *q = NULL;
    if (s->db == NULL) return false;
    int code = sqlite3_prepare_v2(s->db, find_profile, -1, &q, NULL);
    if (code == SQLITE_OK) code = get_record(s, q, layer, a, out);
    if (code != SQLITE_ROW && code != SQLITE_DONE) set_error(s, "read", sqlite3_errmsg(s->db));
    (void)sqlite3_finalize(q);
    leave_damaged(s, "read", code);
    return code == SQLITE_ROW;
}
