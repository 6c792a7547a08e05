#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Err file_failed(const char *doing, const char *path) {
    return err_set(ERR_IO, "cannot %s %s: %s", doing, path, strerror(errno));
}

static Err open_regular(const char *path, int *fd, struct stat *st) {
    *fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not hang us
    if (*fd < 0) return file_failed("open", path);
    Err e = ERR_OK;
    if (fstat(*fd, st) != 0)
        e = file_failed("look at", path);
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

// The size in the directory is only a hint: files in /proc say 0, and others grow as we read. The
// chunks lie side by side because nobody else takes from the arena meanwhile.
static Err read_all(int fd, const char *path, size_t hint, size_t cap, Arena *a, size_t *len) {
    size_t room = 0;
    for (*len = 0;;) {
        if (room - *len < 2) {
            size_t more = room == 0 && hint > 0 ? hint + 2 : room + 4096;
            if (arena_try(a, more, 1, 1) == NULL)
                return err_set(ERR_LIMIT, "cannot read %s: no memory for %zu bytes", path, more);
            room += more;
        }
        ssize_t n = read(fd, a->base + a->used - (room - *len), room - *len - 1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_failed("read", path);
        if (n == 0) break;
        *len += (size_t)n;
        if (*len > cap)
            return err_set(ERR_LIMIT, "cannot read %s: it is larger than %zu bytes", path, cap);
    }
    arena_rewind(a, a->used - (room - *len) + 1);
    a->base[a->used - 1] = '\0';
    return ERR_OK;
}

Err file_read(const char *path, size_t cap, Arena *a, char **out, size_t *len) {
    int         fd;
    struct stat st;
    TRY(open_regular(path, &fd, &st));
    size_t mark = a->used, hint = (size_t)st.st_size, got = 0;
    Err    e = hint > cap
                   ? err_set(ERR_LIMIT, "cannot read %s: its %zu bytes are more than the limit of %zu",
                             path, hint, cap)
                   : read_all(fd, path, hint, cap, a, &got);
    (void)close(fd);
    if (e != ERR_OK) {
        arena_rewind(a, mark);
        return e;
    }
    *out = a->base + mark;
    *len = got;
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

// Where caches go, by the XDG rules; a relative XDG_CACHE_HOME does not count. Without a home there
// is still the temporary directory, but only a folder there that is ours alone.
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
        if (lstat(path, &st) != 0) return file_failed("look at", path);
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
            return err_set(ERR_IO, "cannot use %s: it belongs to someone else; set XDG_CACHE_HOME",
                           path);
    }
    *out = path;
    return ERR_OK;
}
