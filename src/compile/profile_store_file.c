#include "compile/profile_store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

// https://www.sqlite.org/fileformat.html, section 1.3
enum { HEADER_BYTES = 100, SCHEMA_AT = 60, OWNER_AT = 68 };

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

static Err read_header(const char *path, int fd, bool *there) {
    uint8_t     head[HEADER_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0) return reject(path, strerror(errno));
    *there = st.st_size > 0;
    if (!*there) return ERR_OK;
    ssize_t n = pread(fd, head, sizeof head, 0);
    return n < 0 ? reject(path, strerror(errno)) : check_header(path, head, (size_t)n);
}

static bool begins(const char *path, const uint8_t *with, size_t n) {
    uint8_t head[8] = {0};
    int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool    same = fd >= 0 && read(fd, head, n) == (ssize_t)n && memcmp(head, with, n) == 0;
    if (fd >= 0) (void)close(fd);
    return same;
}

// SQLite deletes the journals of an empty database; a file of that name may be another program's.
static Err check_journals(const char *path) {
    static const uint8_t     magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    static const char *const ends[] = {"-journal", "-wal"};
    for (int i = 0; i < 2; i++) {
        char        name[4096 + 16];
        struct stat st;
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        if (lstat(name, &st) != 0 || st.st_size == 0) continue;
        if (i == 0 && begins(name, magic, sizeof magic)) continue;
        return err_set(ERR_CONFIG,
                       "cannot use %.400s as profile store: SQLite would delete %.400s; name "
                       "another file",
                       path, name);
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

static Err check_owner(const char *path, const char *folder) {
    struct stat st;
    if (stat(folder, &st) == 0 && !is_ours(&st))
        return reject(path, "other users may write in its folder");
    if (lstat(path, &st) == 0 && !is_ours(&st)) return reject(path, "other users may write it");
    if (stat(path, &st) == 0 && !is_ours(&st)) return reject(path, "other users may write it");
    return ERR_OK;
}

static Err check_new(const char *path, const char *folder) {
    if (access(folder, W_OK | X_OK) == 0) return ERR_OK;
    return err_set(ERR_CONFIG, "cannot use %.400s as profile store: cannot write to %.400s: %s",
                   path, folder, strerror(errno));
}

static Err check_existing(const char *path, bool *there) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return reject(path, strerror(errno));
    Err e = read_header(path, fd, there);
    (void)close(fd);
    return e;
}

Err profile_store_recognise(const char *path, bool *there) {
    char        folder[4096];
    struct stat st;
    *there = false;
    TRY(file_folder(path, folder, sizeof folder));
    if (stat(path, &st) == 0) TRY(check_type(path, st.st_mode));
    TRY(check_owner(path, folder));
    if (stat(path, &st) == 0)
        TRY(check_existing(path, there));
    else if (errno == ENOENT)
        TRY(check_new(path, folder));
    else
        return reject(path, strerror(errno));
    return *there ? ERR_OK : check_journals(path);
}
