#include "compile/profile_store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kernel/isa.h"

// A rollback journal rather than WAL: that also works in a read-only directory. synchronous = OFF,
// because a torn file is detected and rebuilt.
#define SETTINGS                                                                                   \
    "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cell_size_check = ON"
#define OWNER    1129272400  // application_id "COTP"
#define SCHEMA   1
#define NAME     "profiles-1.db"
#define KEPT     "8"  // kernel builds kept per machine
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

enum { BUSY_MS = 3000 };

static const char make_tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS build(id INTEGER PRIMARY KEY AUTOINCREMENT, machine TEXT NOT NULL,"
    " kernels TEXT NOT NULL, UNIQUE(machine, kernels));"
    "CREATE TABLE IF NOT EXISTS profile(build INTEGER NOT NULL, layer TEXT NOT NULL,"
    " record BLOB NOT NULL, PRIMARY KEY(build, layer)) WITHOUT ROWID;"
    "PRAGMA application_id = " TEXT(OWNER) "; PRAGMA user_version = " TEXT(SCHEMA) "; COMMIT";

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

// A database of another program is left alone; an unknown schema version counts as damaged.
static int check_tables(ProfileStore *s) {
    int64_t owner = 0, schema = 0, tables = 0;
    int     code = query_int(s, "SELECT count(*) FROM sqlite_master", &tables);
    if (code == SQLITE_OK) code = query_int(s, "PRAGMA application_id", &owner);
    if (code == SQLITE_OK) code = query_int(s, "PRAGMA user_version", &schema);
    if (code != SQLITE_OK) return code;
    if (tables == 0 && owner == 0)
        return s->read_only ? SQLITE_OK : sqlite3_exec(s->db, make_tables, NULL, NULL, NULL);
    if (owner != OWNER) return SQLITE_AUTH;
    return schema == SCHEMA ? SQLITE_OK : SQLITE_CORRUPT;
}

static int open_once(ProfileStore *s) {
    struct stat st;
    int         flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int         code = sqlite3_open_v2(s->path, &s->db, flags, NULL);
    if (code == SQLITE_OK) {
        s->inode = stat(s->path, &st) == 0 ? (uint64_t)st.st_ino : 0;
        s->read_only = sqlite3_db_readonly(s->db, "main") == 1;
        (void)sqlite3_busy_timeout(s->db, BUSY_MS);
        code = sqlite3_exec(s->db, SETTINGS, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) code = check_tables(s);
    if (code == SQLITE_OK) return code;
    set_error(s, "use",
              code == SQLITE_AUTH ? "it belongs to another program" : sqlite3_errmsg(s->db));
    close_database(s);
    return code;
}

// Renames a damaged file to PATH.bad, unless another process has just done so, and starts a new
// one.
static void rebuild(ProfileStore *s) {
    char        bad[sizeof s->path + 16], journal[sizeof s->path + 16];
    struct stat st;
    close_database(s);
    (void)snprintf(bad, sizeof bad, "%s.bad", s->path);
    (void)snprintf(journal, sizeof journal, "%s-journal", s->path);
    if (stat(s->path, &st) == 0 && (uint64_t)st.st_ino == s->inode) {
        if (rename(s->path, bad) != 0) return;
        (void)unlink(journal);
        s->rebuilt = true;
    }
    (void)open_once(s);
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

// A file or folder that other users may write is not trusted. In a sticky folder such as /tmp,
// users cannot replace files of others.
static bool is_ours(const struct stat *st) {
    bool mine = st->st_uid == geteuid() || st->st_uid == 0;
    bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;
    return mine && ((st->st_mode & S_IWOTH) == 0 || sticky);
}

static bool is_trusted(ProfileStore *s) {
    struct stat st;
    char        folder[sizeof s->path];
    const char *slash = strrchr(s->path, '/');
    size_t      n = slash == NULL ? 0 : slash == s->path ? 1 : (size_t)(slash - s->path);
    memcpy(folder, n > 0 ? s->path : ".", n > 0 ? n : 1);
    folder[n > 0 ? n : 1] = '\0';
    const char *bad = NULL;
    if (stat(folder, &st) == 0 && !is_ours(&st)) bad = "other users may write in its folder";
    if (stat(s->path, &st) == 0 && !is_ours(&st)) bad = "other users may write it";
    if (bad != NULL) set_error(s, "use", bad);
    return bad == NULL;
}

void profile_store_open(ProfileStore *s, const char *path, const Cpu *cpu, const Isa *isa) {
    *s = (ProfileStore){0};
    name_machine(s, cpu, isa);
    if (choose_path(s, path) != ERR_OK) {
        (void)snprintf(s->why, sizeof s->why, "no profile store: %.400s", err_why());
        return;
    }
    if (!is_trusted(s)) return;
    int code = open_once(s);
    if (is_damage(code)) rebuild(s);
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
    if (is_damage(code)) rebuild(s);
    if (is_damage(code) && s->db != NULL) code = put_record(s, layer, record, len);
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
    if (is_damage(code) && !s->read_only) rebuild(s);
    return code == SQLITE_ROW;
}
