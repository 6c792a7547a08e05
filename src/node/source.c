#include "node/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "model/zoo/zoo.h"

#define FILE_BYTES_MAX ((uint64_t)INT32_MAX)  // protobuf's own limit
#define ZOO            "zoo:"

enum { CHUNK = 1 << 20, FILES_MOST = 4096 };

bool source_is_zoo(const char *what) {
    size_t n = strlen(what);
    if (strncmp(what, ZOO, strlen(ZOO)) == 0) return true;
    return strchr(what, '/') == NULL && (n < 5 || strcmp(what + n - 5, ".onnx") != 0) &&
           access(what, F_OK) != 0;
}

static const char *zoo_name(const char *what) {
    return strncmp(what, ZOO, strlen(ZOO)) == 0 ? what + strlen(ZOO) : what;
}

static SourceStamp stamp_of(const struct stat *st) {
    return (SourceStamp){.device = st->st_dev,
                         .inode = st->st_ino,
                         .modified = (TimeNs)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                         .bytes = (uint64_t)st->st_size};
}

static bool is_onnx(const char *name) {
    size_t n = strlen(name);
    return n >= 5 && strcmp(name + n - 5, ".onnx") == 0;
}

// Independent of the order in which the directory lists its files.
static uint64_t mix_file(int folder, const char *name) {
    struct stat st;
    uint64_t    sum = HASH_FNV_START;
    if (is_onnx(name) || fstatat(folder, name, &st, 0) != 0 || !S_ISREG(st.st_mode)) return 0;
    uint64_t words[] = {(uint64_t)st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                        (uint64_t)st.st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) sum = hash_fnv_add(sum, words[i]);
    return sum;
}

static uint64_t mix_folder(const char *path) {
    char     folder[4096];
    uint64_t sum = 0;
    if (file_folder(path, folder, sizeof folder) != ERR_OK) return 0;
    DIR *d = opendir(folder);
    if (d == NULL) return 0;
    const struct dirent *e = NULL;
    for (int i = 0; i < FILES_MOST && (e = readdir(d)) != NULL; i++)
        sum += mix_file(dirfd(d), e->d_name);
    (void)closedir(d);
    return sum;
}

// Files beside the model as it is listed, and beside its file behind links.
static uint64_t look_around(const char *path) {
    char    *real = realpath(path, NULL);
    uint64_t sum = mix_folder(path);
    if (real != NULL && strcmp(real, path) != 0) sum = hash_fnv_add(sum, mix_folder(real));
    free(real);
    return sum;
}

Err source_stamp(const char *what, SourceStamp *out) {
    struct stat st;
    *out = (SourceStamp){0};
    if (source_is_zoo(what)) return ERR_OK;
    if (stat(what, &st) != 0) return err_set(ERR_IO, "cannot read its file: %s", strerror(errno));
    *out = stamp_of(&st);
    out->around = look_around(what);
    return ERR_OK;
}

bool source_same_stamp(const SourceStamp *a, const SourceStamp *b) {
    return a->device == b->device && a->inode == b->inode && a->modified == b->modified &&
           a->bytes == b->bytes && a->around == b->around;
}

static Err check_size(uint64_t bytes, const SourceOptions *o) {
    if (o->max_bytes == 0 || bytes <= o->max_bytes) return ERR_OK;
    return err_set(ERR_LIMIT,
                   "its weights need %" PRIu64 " MiB of memory; the limit is %" PRIu64 " MiB",
                   (bytes >> 20) + 1, o->max_bytes >> 20);
}

static Err look(int fd, struct stat *st) {
    if (fstat(fd, st) != 0) return err_set(ERR_IO, "cannot read its file: %s", strerror(errno));
    if (S_ISDIR(st->st_mode)) return err_set(ERR_IO, "its file is a directory");
    if (!S_ISREG(st->st_mode)) return err_set(ERR_IO, "its file is a device, pipe or socket");
    if ((uint64_t)st->st_size > FILE_BYTES_MAX)
        return err_set(ERR_LIMIT, "its file exceeds 2 GiB: store weights as external data");
    return ERR_OK;
}

static Err read_bytes(int fd, char *to, size_t n, char hash[SHA256_TEXT]) {
    Sha256 sum;
    sha256_begin(&sum);
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, to + at, n - at < CHUNK ? n - at : CHUNK);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_set(ERR_IO, "cannot read its file: %s", strerror(errno));
        if (got == 0) return err_set(ERR_IO, "its file was truncated while it was read");
        sha256_add(&sum, to + at, (size_t)got);
        at += (size_t)got;
    }
    sha256_end(&sum, hash);
    return ERR_OK;
}

// A file that is being copied or replaced may be inconsistent.
static Err check_unchanged(int fd, const char *path, const SourceStamp *before) {
    struct stat st;
    SourceStamp after, named;
    if (fstat(fd, &st) != 0) return err_set(ERR_IO, "cannot read its file: %s", strerror(errno));
    after = stamp_of(&st);
    TRY(source_stamp(path, &named));
    after.around = named.around = before->around;  // checked again after the weights were read
    if (source_same_stamp(before, &after) && source_same_stamp(before, &named)) return ERR_OK;
    return err_set(ERR_IO, "its file changed while it was read; load it again");
}

static Err read_open(Source *s, int fd, const char *path, const SourceOptions *o, Arena *a,
                     char **bytes) {
    struct stat st;
    TRY(look(fd, &st));
    s->stamp = stamp_of(&st);
    s->stamp.around = look_around(path);
    TRY(check_size(s->stamp.bytes, o));
    TRY(arena_init(a, s->stamp.bytes + 1));
    *bytes = arena_try(a, s->stamp.bytes, 1, 1);
    if (*bytes == NULL) return err_set(ERR_LIMIT, "no memory for its file");
    TRY(read_bytes(fd, *bytes, s->stamp.bytes, s->sha256));
    return check_unchanged(fd, path, &s->stamp);
}

static Err parse(Source *s, const char *path, const SourceOptions *o, const char *bytes) {
    OnnxPlace place = {.path = path, .root = o->root};
    return onnx_read_bytes(bytes, s->stamp.bytes, o->name != NULL ? o->name : path, &place,
                           &s->model);
}

static Err read_file(Source *s, const char *path, const SourceOptions *o) {
    Arena a = {0};
    char *bytes = NULL;
    int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        Err e = err_set(ERR_IO, "cannot read its file: %s", strerror(errno));
        return err_add(e, "%s", o->name != NULL ? o->name : path);
    }
    Err  e = read_open(s, fd, path, o, &a, &bytes);
    bool whole = e == ERR_OK;
    if (e == ERR_OK) e = parse(s, path, o, bytes);
    if (e == ERR_OK && s->model.external && look_around(path) != s->stamp.around) {
        model_finish(&s->model);
        e = err_set(ERR_IO, "its weights changed while they were read; load it again");
        whole = false;
    }
    (void)close(fd);
    arena_finish(&a);
    return whole || e == ERR_OK ? e : err_add(e, "%s", o->name != NULL ? o->name : path);
}

static uint64_t weights_of(const Graph *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        size_t bytes = 0;
        if (g->values[i].constant && tensor_measure(&g->values[i].type, &bytes) == ERR_OK)
            sum += bytes;
    }
    return sum;
}

static bool is_open(const Graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!tensor_known(&g->values[g->inputs[i]].type)) return true;
    return false;
}

static Err prepare(Source *s, const SourceOptions *o) {
    s->weight_bytes = weights_of(s->model.graph);
    TRY(check_size(s->weight_bytes, o));
    TRY(model_materialise(&s->model));
    TRY(fold_constants(&s->model, interp_eval));
    s->weight_bytes = weights_of(s->model.graph);
    s->open = is_open(s->model.graph);
    arena_trim(&s->model.arena);
    if (s->open) TRY(packed_weights_create(&s->packed, &s->model.arena));
    return ERR_OK;
}

static Err build_zoo(Source *s, const char *what, const SourceOptions *o) {
    Err e = zoo_build(zoo_name(what), NULL, &s->model);
    return e == ERR_OK || o->name == NULL ? e : err_add(e, "%s", o->name);
}

Err source_read(Source *s, const char *what, const SourceOptions *o) {
    *s = (Source){0};
    Err e = source_is_zoo(what) ? build_zoo(s, what, o) : read_file(s, what, o);
    if (e != ERR_OK) {
        *s = (Source){0};  // on failure the model was already freed
        return e;
    }
    e = prepare(s, o);
    if (e == ERR_OK) return e;
    e = err_add(e, "%s", o->name != NULL ? o->name : what);
    source_finish(s);
    return e;
}

void source_finish(Source *s) {
    packed_weights_destroy(s->packed);
    model_finish(&s->model);
    *s = (Source){0};
}
