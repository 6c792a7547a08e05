#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

Err file_failed(const char *doing, const char *path) {
    return err_set(ERR_IO, "cannot %s %s: %s", doing, path, strerror(errno));
}

static Err open_regular(const char *path, int *fd, struct stat *st) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not block
    if (*fd < 0) return file_failed("open", path);
    Err e = ERR_OK;
    if (fstat(*fd, st) != 0)
        e = file_failed("stat", path);
    else if (!S_ISREG(st->st_mode))
        e = err_set(ERR_IO, "cannot read %s: it is %s, not a regular file", path,
                    S_ISDIR(st->st_mode) ? "a directory" : "a device, pipe or socket");
    if (e != ERR_OK) (void)close(*fd);
    return e;
}

Err file_open(const char *path, FILE **out, size_t *len) {
    int         fd;
    struct stat st;
    TRY(open_regular(path, &fd, &st));
    FILE *f = fdopen(fd, "rb");
    if (f == NULL) {
        (void)close(fd);
        return file_failed("open", path);
    }
    *out = f;
    *len = (size_t)st.st_size;
    return ERR_OK;
}

typedef struct FileText {
    char  *at;
    size_t len, room;
} FileText;

// Extends the text in place where the arena can, else moves it.
static Err make_room(FileText *t, const char *path, size_t hint, Arena *a) {
    size_t mark = a->used, more = t->room == 0 && hint > 0 ? hint + 2 : t->room + 4096;
    char  *at = arena_try(a, more, 1, 1);
    bool   in_place = t->room == 0 || at == t->at + t->room;
    if (at != NULL && !in_place) {
        arena_rewind(a, mark);
        at = arena_try(a, t->room + more, 1, 1);
        if (at != NULL) memcpy(at, t->at, t->len);
    }
    if (at == NULL)
        return err_set(ERR_LIMIT, "cannot read %s: no memory for %zu bytes", path, more);
    if (t->room == 0 || !in_place) t->at = at;
    t->room += more;
    return ERR_OK;
}

// st_size is a hint: files in /proc report 0, others grow while they are read.
static Err read_all(int fd, const char *path, size_t hint, size_t cap, Arena *a, FileText *t) {
    for (;;) {
        if (t->room - t->len < 2) TRY(make_room(t, path, hint, a));
        ssize_t n = read(fd, t->at + t->len, t->room - t->len - 1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_failed("read", path);
        if (n == 0) break;
        t->len += (size_t)n;
        if (t->len > cap)
            return err_set(ERR_LIMIT, "cannot read %s: it is larger than %zu bytes", path, cap);
    }
    arena_rewind(a, a->used - (t->room - t->len) + 1);
    t->at[t->len] = '\0';
    return ERR_OK;
}

Err file_read(const char *path, size_t cap, Arena *a, char **out, size_t *len) {
    int         fd;
    struct stat st;
    TRY(open_regular(path, &fd, &st));
    FileText text = {0};
    size_t   mark = a->used, hint = (size_t)st.st_size;
    Err      e = hint > cap
                     ? err_set(ERR_LIMIT, "cannot read %s: its %zu bytes are more than the limit of %zu",
                               path, hint, cap)
                     : read_all(fd, path, hint, cap, a, &text);
    (void)close(fd);
    if (e != ERR_OK) {
        arena_rewind(a, mark);
        return e;
    }
    *out = text.at;
    *len = text.len;
    return ERR_OK;
}

Err file_visit(const char *path, size_t cap, FileVisit *visit, void *ctx) {
    Arena  a;
    char  *text = NULL;
    size_t len = 0;
    TRY(arena_init(&a, cap + 8192));
    Err e = file_read(path, cap, &a, &text, &len);
    if (e == ERR_OK) e = visit(ctx, path, text, len);
    arena_finish(&a);
    return e;
}

Err file_folder(const char *path, char *out, size_t size) {
    const char *slash = strrchr(path, '/');
    size_t      n = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (n >= size || size < 2) return err_set(ERR_LIMIT, "the path %.100s... is too long", path);
    memcpy(out, n > 0 ? path : ".", n > 0 ? n : 1);
    out[n > 0 ? n : 1] = '\0';
    return ERR_OK;
}

Err file_make_dirs(const char *path) {
    char   part[4096];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return err_set(ERR_ARG, "cannot make a directory: its name is empty or too long");
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return file_failed("make directory", part);
        int         why = errno;
        struct stat st;
        if (stat(part, &st) != 0) {
            errno = why;
            return file_failed("make directory", part);
        }
        if (!S_ISDIR(st.st_mode))
            return err_set(ERR_IO, "cannot make directory %s: %s is a file", path, part);
        part[i] = path[i];
    }
    return ERR_OK;
}

// The XDG cache directory; a relative XDG_CACHE_HOME is ignored, as the specification says. Without
// a home: a directory in /var/tmp that belongs to this user alone.
static const char *cache_path(Arena *a, bool *shared) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *shared = false;
    if (xdg != NULL && xdg[0] == '/') return arena_printf(a, "%s/cotenant", xdg);
    if (home != NULL && home[0] == '/') return arena_printf(a, "%s/.cache/cotenant", home);
    *shared = true;
    return arena_printf(a, "/var/tmp/cotenant-%lu", (unsigned long)geteuid());
}

Err file_cache_dir(Arena *a, const char **out) {
    bool        shared;
    struct stat st;
    const char *path = cache_path(a, &shared);
    if (!shared) {
        TRY(file_make_dirs(path));
    } else {
        if (mkdir(path, 0700) != 0 && errno != EEXIST) return file_failed("make directory", path);
        if (lstat(path, &st) != 0) return file_failed("stat", path);
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
            return err_set(ERR_IO,
                           "cannot use %s: another user owns or can write it; set XDG_CACHE_HOME",
                           path);
    }
    *out = path;
    return ERR_OK;
}

// Resolves symbolic links, so that a link's target is replaced and the link stays.
static Err resolve(AtomicFile *f, const char *path) {
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof f->path || n >= PATH_MAX)
        return err_set(ERR_ARG, "cannot write a file: its name is empty or too long");
    char *real = realpath(path, NULL);
    if (real != NULL && strlen(real) < sizeof f->path)
        memcpy(f->path, real, strlen(real) + 1);
    else
        memcpy(f->path, path, n + 1);
    free(real);
    return ERR_OK;
}

static size_t dir_len(const char *path) {  // with its slash; 0: the working directory
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static Err open_temp(AtomicFile *f, int *fd) {
    size_t dir = dir_len(f->path);
    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned long long random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
            return file_failed("name a file beside", f->path);
        int n = snprintf(f->temp, sizeof f->temp, "%.*s.cotenant-%016llx.tmp", (int)dir, f->path,
                         random);
        if (n < 0 || (size_t)n >= sizeof f->temp)
            return err_set(ERR_ARG, "cannot write %s: its name is too long", f->path);
        *fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0) return ERR_OK;
        if (errno != EEXIST) break;
    }
    Err e = file_failed("write a file beside", f->path);
    f->temp[0] = '\0';
    return e;
}

static Err open_target(AtomicFile *f, int *fd) {
    struct stat st;
    bool        exists = stat(f->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return err_set(ERR_IO, "cannot write %s: it is a directory", f->path);
    if (exists && !S_ISREG(st.st_mode)) {  // renaming over a device would destroy it
        *fd = open(f->path, O_WRONLY | O_CLOEXEC);
        return *fd >= 0 ? ERR_OK : file_failed("write", f->path);
    }
    TRY(open_temp(f, fd));
    if (exists && fchmod(*fd, st.st_mode & 0777) != 0) {
        Err e = file_failed("keep the permissions of", f->path);
        (void)close(*fd);
        (void)unlink(f->temp);
        return e;
    }
    return ERR_OK;
}

Err file_begin(AtomicFile *f, const char *path) {
    *f = (AtomicFile){0};
    TRY(resolve(f, path));
    int fd = -1;
    TRY(open_target(f, &fd));
    f->out = fdopen(fd, "wb");
    if (f->out != NULL) return ERR_OK;
    Err e = file_failed("write", f->path);
    (void)close(fd);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    return e;
}

void file_drop(AtomicFile *f) {
    if (f->out == NULL) return;
    (void)fclose(f->out);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    f->out = NULL;
}

static Err flush(AtomicFile *f) {
    bool broken = ferror(f->out) != 0;
    if (fflush(f->out) != 0) return file_failed("write", f->path);
    if (broken) return err_set(ERR_IO, "cannot write %s: is the disk full?", f->path);
    if (f->temp[0] != '\0' && fsync(fileno(f->out)) != 0) return file_failed("flush", f->path);
    FILE *out = f->out;
    f->out = NULL;
    if (fclose(out) == 0) return ERR_OK;
    Err e = file_failed("close", f->path);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    return e;
}

static Err sync_dir(AtomicFile *f) {
    f->temp[dir_len(f->temp)] = '\0';
    int fd = open(f->temp[0] == '\0' ? "." : f->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ERR_OK;  // write-only directory: cannot be opened for fsync
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    Err  e = ok ? ERR_OK : file_failed("flush the directory of", f->path);
    (void)close(fd);
    return e;
}

static int put_in_place(const AtomicFile *f) {
    if (!f->fresh) return rename(f->temp, f->path);
    if (renameat2(AT_FDCWD, f->temp, AT_FDCWD, f->path, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    if (link(f->temp, f->path) != 0) return -1;  // file systems without that flag, such as NFS
    (void)unlink(f->temp);
    return 0;
}

Err file_commit(AtomicFile *f) {
    Err e = flush(f);
    if (e != ERR_OK) {
        file_drop(f);
        return e;
    }
    if (f->temp[0] == '\0') return ERR_OK;
    if (put_in_place(f) != 0) {
        e = file_failed(f->fresh ? "create" : "replace", f->path);
        (void)unlink(f->temp);
        return e;
    }
    return sync_dir(f);
}

Err file_replace(const char *path, const void *data, size_t len) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    if (len > 0) (void)fwrite(data, 1, len, f.out);  // file_commit reports errors
    return file_commit(&f);
}

static Err write_new(AtomicFile *f, const void *data, size_t len) {
    struct stat st;
    int         fd = fileno(f->out);
    if (len > 0) (void)fwrite(data, 1, len, f->out);
    if (fstat(fd, &st) == 0 && fchmod(fd, st.st_mode & 0755) == 0) return file_commit(f);
    Err e = file_failed("set the permissions of", f->path);
    file_drop(f);
    return e;
}

Err file_create(const char *path, const void *data, size_t len, bool *created) {
    AtomicFile  f;
    struct stat st;
    *created = false;
    if (lstat(path, &st) == 0) return ERR_OK;
    TRY(file_begin(&f, path));
    f.fresh = true;
    Err e = write_new(&f, data, len);
    *created = e == ERR_OK;
    return *created || lstat(path, &st) == 0 ? ERR_OK : e;
}

// One link: *more if path is one; its target is then in out.
static Err follow(const char *path, char *out, size_t size, bool *more) {
    char    text[4096];
    ssize_t n = readlink(path, text, sizeof text);
    size_t  dir = n > 0 && text[0] == '/' ? 0 : dir_len(path);
    *more = n > 0;
    if (n <= 0) return ERR_OK;
    if ((size_t)n == sizeof text || dir + (size_t)n >= size)
        return err_set(ERR_LIMIT, "the target of the link %.100s is too long", path);
    (void)snprintf(out, size, "%.*s%.*s", (int)dir, path, (int)n, text);
    return ERR_OK;
}

Err file_target(const char *path, char *out, size_t size) {
    char at[4096];
    bool more = true;
    if (strlen(path) >= sizeof at || strlen(path) >= size)
        return err_set(ERR_LIMIT, "the path %.100s... is too long", path);
    memcpy(out, path, strlen(path) + 1);
    for (int links = 0; links < 40; links++) {
        memcpy(at, out, strlen(out) + 1);
        TRY(follow(at, out, size < sizeof at ? size : sizeof at, &more));
        if (!more) return ERR_OK;
    }
    return err_set(ERR_IO, "cannot follow %s: too many symbolic links", path);
}

bool file_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
