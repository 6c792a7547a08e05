// External data: locations come from the model file, which is hostile input; links come from the
// folder, which the operator has set up. A location only leads down from the model's folder. Links
// are followed as long as the file itself is below the folder that the operator named, the model's
// folder, or the folder of the model's file behind its own links: so caches of Hugging Face
// (snapshots/REVISION/model.onnx -> blobs/HASH) and volumes of Kubernetes (..data -> ..DATE) work,
// and a link to anything else is rejected. The file is opened by its real path without following
// links, so that a link that changes meanwhile cannot lead elsewhere, and it is read rather than
// mapped: truncation is an error, not a SIGBUS.
#include "model/onnx/onnx_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "onnx.pb-c.h"

enum {
    OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
    LOCATION_MAX = 4096
};

typedef struct Location {
    const char *location;
    uint64_t    offset, length;
    bool        has_length;
} Location;

static Err parse_number(const char *key, const char *text, uint64_t *out) {
    uint64_t v = 0;
    bool     bad = *text == '\0';
    for (const char *c = text; *c != '\0' && !bad; c++)
        bad = *c < '0' || *c > '9' || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
              __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v);
    if (bad) return err_set(ERR_INVALID, "external %s '%s' is not a byte count", key, text);
    *out = v;
    return ERR_OK;
}

static Err read_place(const Onnx__TensorProto *p, Location *out) {
    *out = (Location){0};
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
        if (key == NULL || value == NULL) continue;
        if (strcmp(key, "location") == 0) out->location = value;
        if (strcmp(key, "offset") == 0) TRY(parse_number(key, value, &out->offset));
        if (strcmp(key, "length") == 0) TRY(parse_number(key, value, &out->length));
        if (strcmp(key, "length") == 0) out->has_length = true;
    }
    return out->location != NULL ? ERR_OK : err_set(ERR_INVALID, "external data has no location");
}

// Removes empty and "." components, so that a file has one name.
static Err plain_location(const char *from, char *to, size_t size) {
    if (from[0] == '/') return err_set(ERR_INVALID, "external location '%s' is absolute", from);
    if (strlen(from) >= size) return err_set(ERR_INVALID, "external location is too long");
    size_t used = 0;
    for (size_t n; *from != '\0'; from += n + (from[n] == '/')) {
        n = strcspn(from, "/");
        if (n == 2 && memcmp(from, "..", 2) == 0)
            return err_set(ERR_INVALID, "external location leaves the model's folder by '..'");
        if (n == 0 || (n == 1 && *from == '.')) continue;
        if (used > 0) to[used++] = '/';
        memcpy(to + used, from, n);
        used += n;
    }
    to[used] = '\0';
    return used > 0 ? ERR_OK : err_set(ERR_INVALID, "external location is empty");
}

// Component by component, for kernels without openat2; no step follows a link.
static int open_by_steps(int dir, const char *path) {
    char part[LOCATION_MAX];
    int  at = dup(dir);
    while (at >= 0) {
        size_t n = strcspn(path, "/");
        bool   last = path[n] == '\0';
        memcpy(part, path, n);
        part[n] = '\0';
        int next =
            openat(at, part, last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        close(at);
        errno = why;
        if (last) return next;
        at = next;
        path += n + 1;
    }
    return at;
}

static int open_without_links(const char *real) {
    struct open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return (int)fd;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int found = root >= 0 ? open_by_steps(root, real + 1) : -1, why = errno;
    if (root >= 0) close(root);
    errno = why;
    return found;
}

static char *real_copy(Arena *a, const char *path) {
    char *real = realpath(path, NULL);
    char *copy = real != NULL ? arena_str(a, real) : NULL;
    free(real);
    return copy;
}

static char *folder_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return arena_str(a, ".");
    return slash == path ? arena_str(a, "/") : arena_printf(a, "%.*s", (int)(slash - path), path);
}

// Folders are resolved at the first external tensor.
static void find_folders(OnnxStore *s) {
    Arena *a = s->arena;
    if (s->listed != NULL) return;
    const char *file = real_copy(a, s->place->path);
    s->listed = folder_of(a, s->place->path);
    s->trusted[0] = real_copy(a, s->listed);
    s->trusted[1] = file != NULL ? folder_of(a, file) : NULL;
    s->trusted[2] = s->place->root != NULL ? real_copy(a, s->place->root) : NULL;
}

static bool is_below(const char *path, const char *folder) {
    size_t n = folder != NULL ? strlen(folder) : 0;
    if (n == 0) return false;
    if (n == 1) return true;  // the root of all
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

static bool is_trusted(const OnnxStore *s, const char *real) {
    bool trusted = false;
    for (uint32_t i = 0; i < ONNX_TRUSTED && !trusted; i++) trusted = is_below(real, s->trusted[i]);
    return trusted;
}

// Beside the model as it is listed, or else beside its file behind links.
static char *resolve(const OnnxStore *s, const char *path, char out[PATH_MAX]) {
    const char *const bases[] = {s->listed, s->trusted[1]};
    for (int i = 0; i < 2; i++) {
        char full[PATH_MAX + LOCATION_MAX];
        if (bases[i] == NULL) continue;
        (void)snprintf(full, sizeof full, "%s/%s", bases[i], path);
        if (realpath(full, out) != NULL) return out;
        if (errno != ENOENT) return NULL;
    }
    return NULL;
}

static Err open_location(OnnxStore *s, const char *path, int *fd) {
    char        real[PATH_MAX];
    struct stat st;
    find_folders(s);
    if (resolve(s, path, real) == NULL)
        return errno == ELOOP || errno == ENOTDIR
                   ? err_set(ERR_INVALID,
                             "external file '%s' is below a file or in a loop of links", path)
                   : err_set(ERR_IO, "external file '%s': %s", path, strerror(errno));
    if (!is_trusted(s, real))
        return err_set(ERR_INVALID,
                       "external file '%s' is a link that leads out of the model's folder and of "
                       "the folder being served; put the file below one of them",
                       path);
    if (stat(real, &st) == 0 && !S_ISREG(st.st_mode))  // opening a device may act on it
        return err_set(ERR_INVALID, "external file '%s' is not a regular file", path);
    *fd = open_without_links(real);
    if (*fd >= 0) return ERR_OK;
    return err_set(ERR_IO, "external file '%s': %s", path, strerror(errno));
}

static size_t machine_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : (size_t)1 << 32;
}

// Tensors may share a file, but at most twice its size is read in total. Links give a file several
// names, so it is known by its number.
static Err check_budget(OnnxStore *s, const char *path, const struct stat *st, size_t bytes) {
    char     key[64];
    uint64_t size = (uint64_t)st->st_size;
    (void)snprintf(key, sizeof key, "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
    if (string_map_get(&s->files, key) == STRING_MAP_NONE) {
        string_map_put(&s->files, arena_str(s->arena, key), 1);
        s->external_left += 2 * (size < machine_bytes() ? (size_t)size : machine_bytes());
    }
    if (bytes > s->external_left)
        return err_set(ERR_LIMIT, "tensors read more than twice the size of external file '%s'",
                       path);
    if (bytes > machine_bytes() - s->external_used)
        return err_set(ERR_LIMIT, "external data needs more memory than this machine has");
    s->external_left -= bytes;
    s->external_used += bytes;
    return ERR_OK;
}

static Err check_file(const struct stat *st, const char *path, const Location *p, size_t bytes) {
    if (!S_ISREG(st->st_mode))
        return err_set(ERR_INVALID, "external file '%s' is not a regular file", path);
    if (st->st_nlink != 1)
        return err_set(ERR_INVALID, "external file '%s' has %ju hard links; make a copy of it",
                       path, (uintmax_t)st->st_nlink);
    if (p->has_length && p->length != bytes)
        return err_set(ERR_INVALID, "its shape needs %zu bytes, external length is %" PRIu64, bytes,
                       p->length);
    uint64_t size = (uint64_t)st->st_size;
    if (p->offset > size || bytes > size - p->offset)
        return err_set(ERR_INVALID,
                       "%zu bytes at offset %" PRIu64 " are past the end of external file '%s'",
                       bytes, p->offset, path);
    return ERR_OK;
}

static Err read_bytes(int fd, const char *path, uint64_t offset, char *to, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(fd, to + at, n - at, (off_t)(offset + at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_set(ERR_IO, "external file '%s': %s", path, strerror(errno));
        if (got == 0)
            return err_set(ERR_IO, "external file '%s' became shorter while it was read", path);
        at += (size_t)got;
    }
    return ERR_OK;
}

static Err read_open(OnnxStore *s, int fd, const char *path, const Location *p, Tensor *out,
                     size_t bytes) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_set(ERR_IO, "external file '%s': %s", path, strerror(errno));
    TRY(check_file(&st, path, p, bytes));
    TRY(check_budget(s, path, &st, bytes));
    out->data = arena_try(s->arena, 1, bytes, TENSOR_ALIGN);
    if (out->data == NULL) return err_set(ERR_LIMIT, "out of memory for its %zu bytes", bytes);
    return read_bytes(fd, path, p->offset, out->data, bytes);
}

Err onnx_external_read(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    if (s->place == NULL)
        return err_set(ERR_UNSUPPORTED, "its data is in another file, which is not allowed here");
    if (out->dtype == DT_STR) return err_set(ERR_INVALID, "strings cannot be external");
    Location place;
    char     path[LOCATION_MAX];
    int      fd = -1;
    TRY(read_place(p, &place));
    TRY(plain_location(place.location, path, sizeof path));
    TRY(open_location(s, path, &fd));
    Err e = read_open(s, fd, path, &place, out, bytes);
    close(fd);
    return e;
}
