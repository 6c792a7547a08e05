#include "compile/profile_store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

// https://www.sqlite.org/fileformat.html, section 1.3
enum { HEADER_BYTES = 100, PAGE_AT = 16, CHANGE_AT = 24, PAGES_AT = 28 };
enum { SCHEMA_AT = 60, OWNER_AT = 68, COUNTED_AT = 92 };
// LOCK_TRIES: looks at the lock of an empty file, each LOCK_PAUSE_US after the other.
// FILE_TRIES: times that other processes may change a file while it is looked at.
enum { LOCK_TRIES = 300, LOCK_PAUSE_US = 10000, FILE_TRIES = 100 };

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static const char make_tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE build(id INTEGER PRIMARY KEY AUTOINCREMENT, machine TEXT NOT NULL,"
    " kernels TEXT NOT NULL, UNIQUE(machine, kernels));"
    "CREATE TABLE profile(build INTEGER NOT NULL, layer TEXT NOT NULL,"
    " record BLOB NOT NULL, PRIMARY KEY(build, layer)) WITHOUT ROWID;"
    "PRAGMA application_id = " TEXT(STORE_OWNER) "; PRAGMA user_version = " TEXT(
        STORE_SCHEMA) "; COMMIT";

typedef struct StorePlace {
    const char *path;                          // as named, for messages
    char        file[4096], folder[4096 + 8];  // links followed
} StorePlace;

static Err reject(const char *path, const char *why) {
    return err_set(ERR_CONFIG, "cannot use %.400s as profile store: %s", path, why);
}

#define LEFT "; it is left as it is: name another file, or remove it"

static uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static Err check_header(const char *path, const uint8_t *head, size_t n) {
    if (n < HEADER_BYTES || memcmp(head, "SQLite format 3", 16) != 0)
        return reject(path, "it is not a profile store of cotenant" LEFT);
    if (big_endian(head + OWNER_AT) != STORE_OWNER)
        return reject(path, "it is a database of another program" LEFT);
    uint32_t schema = big_endian(head + SCHEMA_AT);
    if (schema == STORE_SCHEMA) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "cannot use %.400s as profile store: another version of cotenant wrote it "
                   "(format %" PRIu32 ", this one has %d)" LEFT,
                   path, schema, STORE_SCHEMA);
}

// The header has the number of pages, unless an old version of SQLite wrote it.
static bool is_cut(const uint8_t *head, off_t size) {
    uint64_t page = (uint64_t)head[PAGE_AT] << 8 | head[PAGE_AT + 1];
    if (page == 1) page = 65536;
    bool counted = memcmp(head + CHANGE_AT, head + COUNTED_AT, 4) == 0;
    return counted && big_endian(head + PAGES_AT) * page > (uint64_t)size;
}

static Err read_header(const char *path, int fd, bool *there, bool *cut) {
    uint8_t     head[HEADER_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0) return reject(path, strerror(errno));
    *there = st.st_size > 0;
    if (!*there) return ERR_OK;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0 || fstat(fd, &st) != 0) return reject(path, strerror(errno));
    TRY(check_header(path, head, (size_t)n));
    *cut = is_cut(head, st.st_size);
    return ERR_OK;
}

static bool begins(const char *path, const uint8_t *with, size_t n) {
    uint8_t head[8] = {0};
    int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool    same = fd >= 0 && read(fd, head, n) == (ssize_t)n && memcmp(head, with, n) == 0;
    if (fd >= 0) (void)close(fd);
    return same;
}

// SQLite deletes the journals of an empty database; a file of that name may be another program's.
// *journal: there is one that SQLite wrote.
static Err check_journals(const StorePlace *p, bool *journal) {
    static const uint8_t     magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    static const char *const ends[] = {"-journal", "-wal"};
    *journal = false;
    for (int i = 0; i < 2; i++) {
        char        name[4096 + 16];
        struct stat st;
        (void)snprintf(name, sizeof name, "%s%s", p->file, ends[i]);
        if (lstat(name, &st) != 0 || st.st_size == 0) continue;
        if (i == 0 && begins(name, magic, sizeof magic))
            *journal = true;
        else
            return err_set(ERR_CONFIG,
                           "cannot use %.400s as profile store: SQLite would delete %.400s; name "
                           "another file",
                           p->path, name);
    }
    return ERR_OK;
}

static Err check_type(const char *path, mode_t mode) {
    if (S_ISREG(mode)) return ERR_OK;
    return reject(path, S_ISDIR(mode) ? "it is a folder; name a file"
                                      : "it is a device, pipe or socket; name a file");
}

// A file, link or folder that other users may change is not trusted. In a sticky folder such as
// /tmp, users cannot replace files of others.
static bool is_ours(const struct stat *st) {
    bool mine = st->st_uid == geteuid() || st->st_uid == 0;
    bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;
    bool link = S_ISLNK(st->st_mode);
    return mine && ((st->st_mode & S_IWOTH) == 0 || sticky || link);
}

static Err check_owner(const StorePlace *p) {
    struct stat st;
    char        folder[4096];
    TRY(file_folder(p->path, folder, sizeof folder));
    if ((stat(folder, &st) == 0 && !is_ours(&st)) || (stat(p->folder, &st) == 0 && !is_ours(&st)))
        return reject(p->path, "other users may write in its folder");
    if ((lstat(p->path, &st) == 0 && !is_ours(&st)) || (stat(p->file, &st) == 0 && !is_ours(&st)))
        return reject(p->path, "other users may write it");
    return ERR_OK;
}

static Err check_new(const StorePlace *p) {
    if (access(p->folder, W_OK | X_OK) == 0) return ERR_OK;
    return err_set(ERR_CONFIG, "cannot use %.400s as profile store: cannot write to %.400s: %s",
                   p->path, p->folder, strerror(errno));
}

// A process that writes, or was killed while it did, leaves a journal: then the file may be shorter
// than its header says.
static bool has_journal(const StorePlace *p) {
    char        name[4096 + 16];
    struct stat st;
    (void)snprintf(name, sizeof name, "%s-journal", p->file);
    return lstat(name, &st) == 0 && st.st_size > 0;
}

static Err check_existing(const StorePlace *p, bool *there) {
    bool cut = false;
    int  fd = open(p->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return reject(p->path, strerror(errno));
    Err e = read_header(p->path, fd, there, &cut);
    for (int i = 0; e == ERR_OK && cut && !has_journal(p) && i < FILE_TRIES; i++)
        e = read_header(p->path, fd, there, &cut);  // the write may just have ended
    (void)close(fd);
    if (e != ERR_OK || !cut || has_journal(p)) return e;
    return reject(p->path, "it is damaged: its end is missing" LEFT);
}

static Err check_file(const StorePlace *p, bool *there) {
    struct stat st;
    *there = false;
    if (stat(p->file, &st) == 0) TRY(check_type(p->path, st.st_mode));
    TRY(check_owner(p));
    if (stat(p->file, &st) == 0) return check_existing(p, there);
    return errno == ENOENT ? check_new(p) : reject(p->path, strerror(errno));
}

static bool has_content(const StorePlace *p) {
    struct stat st;
    return stat(p->file, &st) == 0 && st.st_size > 0;
}

// A journal beside a file that has content by now is that of a process which has created the store
// meanwhile.
static Err look(const StorePlace *p, bool *there, bool *journal) {
    for (int i = 0;; i++) {
        TRY(check_file(p, there));
        if (*there) return ERR_OK;
        Err e = check_journals(p, journal);
        if ((e == ERR_OK && !*journal) || i == FILE_TRIES || !has_content(p)) return e;
    }
}

static Err find_place(const char *path, StorePlace *p) {
    p->path = path;
    TRY(file_target(path, p->file, sizeof p->file));
    return file_folder(p->file, p->folder, sizeof p->folder);
}

Err profile_store_recognise(const char *path, bool *there) {
    StorePlace p;
    bool       journal = false;
    TRY(find_place(path, &p));
    return look(&p, there, &journal);
}

// The bytes of an empty store, to be freed with sqlite3_free.
static Err make_bytes(const StorePlace *p, unsigned char **out, sqlite3_int64 *len) {
    sqlite3 *db = NULL;
    bool     made = sqlite3_open(":memory:", &db) == SQLITE_OK &&
                sqlite3_exec(db, make_tables, NULL, NULL, NULL) == SQLITE_OK;
    *out = made ? sqlite3_serialize(db, "main", len, 0) : NULL;
    (void)sqlite3_close(db);
    return *out != NULL ? ERR_OK : reject(p->path, "no memory to create it");
}

static Err lock(const StorePlace *p, int fd) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return ERR_OK;
        if (errno != EWOULDBLOCK && errno != EINTR) return reject(p->path, strerror(errno));
        (void)usleep(LOCK_PAUSE_US);
    }
    return reject(p->path, "another process is creating it and does not end; retry later");
}

static bool is_empty(const StorePlace *p, int fd) {
    struct stat own, named;
    return fstat(fd, &own) == 0 && lstat(p->file, &named) == 0 && own.st_ino == named.st_ino &&
           own.st_dev == named.st_dev && named.st_size == 0;
}

// The journal of an empty database is of a write that never happened: SQLite deletes it when it
// reads. Beside a new file it would be taken for that file's.
static Err drop_journal(const StorePlace *p) {
    sqlite3 *db = NULL;
    int      code = sqlite3_open_v2(p->file, &db, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    return code == SQLITE_OK ? ERR_OK : reject(p->path, sqlite3_errstr(code));
}

// Replaces an empty file under its lock, by which processes that do the same wait for each other.
static Err fill_empty(const StorePlace *p, bool journal, const void *bytes, size_t len) {
    int fd = open(p->file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd < 0) return reject(p->path, strerror(errno));
    Err e = lock(p, fd);
    if (e == ERR_OK && journal && is_empty(p, fd)) e = drop_journal(p);
    if (e == ERR_OK && is_empty(p, fd)) e = file_replace(p->file, bytes, len);
    (void)close(fd);
    return e;
}

static Err create(const StorePlace *p, bool journal) {
    struct stat    st;
    unsigned char *bytes = NULL;
    sqlite3_int64  len = 0;
    bool           created = false;
    TRY(make_bytes(p, &bytes, &len));
    Err e = lstat(p->file, &st) == 0 || journal
                ? fill_empty(p, journal, bytes, (size_t)len)
                : file_create(p->file, bytes, (size_t)len, &created);
    sqlite3_free(bytes);
    return e;
}

Err profile_store_ensure(const char *path) {
    StorePlace p;
    for (int i = 0; i < FILE_TRIES; i++) {
        bool there = false, journal = false;
        TRY(find_place(path, &p));
        TRY(look(&p, &there, &journal));
        if (there) return ERR_OK;
        TRY(create(&p, journal));
    }
    return reject(path, "other processes keep changing it");
}
