#include "serve/models/repository.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/config/config_int.h"
#include "serve/models/pbtxt.h"

enum { ENTRIES_MOST = 1 << 16 };

typedef struct Entries {  // names in a folder, sorted
    const char **at;
    uint32_t     n, room;
} Entries;

// Doubles the room; NULL: the arena is full.
static void *grow(Arena *a, const void *old, uint32_t n, uint32_t *room, size_t size) {
    uint32_t more = *room > 0 ? 2 * *room : 8;
    void    *p = arena_try(a, more, size, _Alignof(max_align_t));
    if (p == NULL) return NULL;
    if (n > 0) memcpy(p, old, n * size);
    *room = more;
    return p;
}

static void PRINTF(2, 3) warn(const Repository *r, const char *fmt, ...) {
    char    text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->warn != NULL) r->warn(r->self, text);
}

static Err no_memory(const char *folder) {
    return err_set(ERR_LIMIT, "%s: out of memory for its entries", folder);
}

bool repository_version(const char *text, uint64_t *out) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18 || text[n] != '\0' || text[0] == '0') return false;
    *out = strtoull(text, NULL, 10);
    return true;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Err read_entries(Repository *r, const char *folder, DIR *dir, Entries *e) {
    for (struct dirent *d; errno = 0, (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.') continue;
        if (e->n == ENTRIES_MOST)
            return err_set(ERR_LIMIT, "%s: more than %d entries; is it a folder of models?", folder,
                           ENTRIES_MOST);
        if (e->n == e->room) e->at = grow(r->arena, e->at, e->n, &e->room, sizeof *e->at);
        if (e->at == NULL) return no_memory(folder);
        e->at[e->n] = config_format(r->arena, "%s", d->d_name);
        if (e->at[e->n++] == NULL) return no_memory(folder);
    }
    if (errno != 0) return err_set(ERR_IO, "cannot read folder %s: %s", folder, strerror(errno));
    return ERR_OK;
}

static Err list_entries(Repository *r, const char *folder, Entries *e) {
    *e = (Entries){0};
    DIR *dir = opendir(folder);
    if (dir == NULL) return err_set(ERR_IO, "cannot read folder %s: %s", folder, strerror(errno));
    Err err = read_entries(r, folder, dir, e);
    (void)closedir(dir);
    if (err == ERR_OK && e->n > 0) qsort(e->at, e->n, sizeof *e->at, by_text);
    return err;
}

// File type (S_IFREG, S_IFDIR, ...) of a name in a folder; 0: it does not exist. Any other failure
// of stat is an error, since the file may exist.
static Err file_type(const char *folder, const char *name, mode_t *kind) {
    char        path[4096];
    struct stat st;
    int         n = snprintf(path, sizeof path, "%s/%s", folder, name);
    *kind = 0;
    if (n < 0 || (size_t)n >= sizeof path) return ERR_OK;
    if (stat(path, &st) == 0)
        *kind = st.st_mode & S_IFMT;
    else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG)
        return err_set(ERR_IO, "cannot access %s: %s", path, strerror(errno));
    return ERR_OK;
}

static bool is_onnx(const char *name) {
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".onnx") == 0;
}

static Err add(Repository *r, const RepositoryModel *m) {
    if (r->n == r->room) r->models = grow(r->arena, r->models, r->n, &r->room, sizeof *r->models);
    if (r->models == NULL) return no_memory(m->name);
    if (r->n == REPOSITORY_MODELS)
        return err_set(ERR_LIMIT, "more than %d models in one folder; split them",
                       REPOSITORY_MODELS);
    r->models[r->n++] = *m;
    return ERR_OK;
}

Err repository_file(Repository *r, const char *path, const char *name) {
    RepositoryModel m = {.name = config_format(r->arena, "%s", name),
                         .versions = arena_try_new(r->arena, RepositoryVersion, 1),
                         .n_versions = 1};
    if (m.name == NULL || m.versions == NULL) return no_memory(path);
    m.versions[0] = (RepositoryVersion){1, config_format(r->arena, "%s", path)};
    return m.versions[0].path != NULL ? add(r, &m) : no_memory(path);
}

static Err declare(Repository *r, const char *folder, RepositoryModel *m) {
    Pbtxt *p = arena_try_new(r->arena, Pbtxt, 1);
    m->pbtxt = config_format(r->arena, "%s/config.pbtxt", folder);
    if (p == NULL || m->pbtxt == NULL) return no_memory(folder);
    TRY(pbtxt_read(m->pbtxt, r->strict, r->arena, p));
    if (p->name[0] != '\0' && strcmp(p->name, m->name) != 0)
        return err_set(ERR_CONFIG,
                       "%s: name is '%.128s', but the folder is %s; make them "
                       "equal, or leave out the name",
                       m->pbtxt, p->name, m->name);
    for (uint32_t i = 0; i < p->n_warnings; i++) warn(r, "%s", p->warnings[i]);
    m->declared = p;
    return ERR_OK;
}

static int by_number(const void *a, const void *b) {
    const RepositoryVersion *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static Err add_version(Repository *r, const char *folder, const char *entry, RepositoryModel *m) {
    uint64_t    number = 0;
    mode_t      kind = 0;
    char        under[4096];
    const char *file = m->declared != NULL && m->declared->filename[0] != '\0'
                           ? m->declared->filename
                           : "model.onnx";
    if (!repository_version(entry, &number)) return ERR_OK;
    (void)snprintf(under, sizeof under, "%s/%s", folder, entry);
    TRY(file_type(folder, entry, &kind));
    if (kind != S_IFDIR) return ERR_OK;
    TRY(file_type(under, file, &kind));
    if (kind != S_IFREG) {
        warn(r, "%s: has no %s; this version is not served", under, file);
        return ERR_OK;
    }
    if (m->n_versions == REPOSITORY_VERSIONS)
        return err_set(ERR_LIMIT, "%s: more than %d versions; remove old ones", folder,
                       REPOSITORY_VERSIONS);
    const char *path = config_format(r->arena, "%s/%s", under, file);
    if (path == NULL) return no_memory(folder);
    m->versions[m->n_versions++] = (RepositoryVersion){number, path};
    return ERR_OK;
}

// Whether a folder has a config.pbtxt or a version; other folders may lie beside models.
static bool has_anything(const Entries *e) {
    uint64_t number = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (strcmp(e->at[i], "config.pbtxt") == 0 || repository_version(e->at[i], &number))
            return true;
    return false;
}

static Err read_model(Repository *r, const char *folder, RepositoryModel *m, bool *none) {
    Entries e;
    mode_t  kind = 0;
    m->versions = arena_try_new(r->arena, RepositoryVersion, REPOSITORY_VERSIONS);
    if (m->versions == NULL) return no_memory(folder);
    TRY(list_entries(r, folder, &e));
    *none = !has_anything(&e);
    TRY(file_type(folder, "config.pbtxt", &kind));
    Err said = kind == S_IFREG ? declare(r, folder, m) : ERR_OK;
    for (uint32_t i = 0; i < e.n; i++) TRY(add_version(r, folder, e.at[i], m));
    if (m->n_versions > 0) qsort(m->versions, m->n_versions, sizeof *m->versions, by_number);
    if (said != ERR_OK) return said;  // err_why() still holds its message
    if (m->n_versions == 0)
        return err_set(ERR_CONFIG, "%s: no version found; expected %s/1/model.onnx", folder,
                       folder);
    return ERR_OK;
}

// A broken model is reported and does not keep others from being served, unless `strict`.
Err repository_model(Repository *r, const char *folder, const char *name) {
    RepositoryModel m = {.name = config_format(r->arena, "%s", name)};
    if (m.name == NULL) return no_memory(folder);
    bool none = false;
    Err  e = read_model(r, folder, &m, &none);
    if (none && e == ERR_CONFIG) {
        warn(r, "%s", err_why());
        return ERR_OK;
    }
    if (e != ERR_OK && r->strict) return e;
    if (e != ERR_OK) {
        m.broken = config_format(r->arena, "%s", err_why());
        if (m.broken == NULL) return no_memory(folder);
    }
    return add(r, &m);
}

static Err add_broken(Repository *r, const char *name) {
    RepositoryModel m = {.name = config_format(r->arena, "%s", name),
                         .broken = config_format(r->arena, "%s", err_why())};
    return m.name != NULL && m.broken != NULL ? add(r, &m) : no_memory(name);
}

static Err add_entry(Repository *r, const char *folder, const char *entry) {
    char   path[4096], name[256];
    size_t n = strlen(entry);
    mode_t kind = 0;
    int    len = snprintf(path, sizeof path, "%s/%s", folder, entry);
    if (len < 0 || (size_t)len >= sizeof path || n >= sizeof name) return ERR_OK;
    Err  e = file_type(folder, entry, &kind);
    bool file = is_onnx(entry) && kind != S_IFDIR;
    if (e == ERR_OK && kind != (file ? S_IFREG : S_IFDIR)) return ERR_OK;
    memcpy(name, entry, n + 1);
    if (file) name[n - 5] = '\0';
    if (!config_valid_name(name, strlen(name))) {
        warn(r, "%s: not a valid model name, skipped; use letters, digits, '.', '_', '-'", path);
        return ERR_OK;
    }
    if (e != ERR_OK) return r->strict ? e : add_broken(r, name);
    return file ? repository_file(r, path, name) : repository_model(r, path, name);
}

// The folder of one model has config.pbtxt or versions in it.
static Err is_model(const char *folder, const Entries *e, bool *out) {
    uint64_t number = 0;
    mode_t   kind = 0;
    TRY(file_type(folder, "config.pbtxt", &kind));
    *out = kind == S_IFREG;
    for (uint32_t i = 0; i < e->n && !*out; i++) {
        char under[4096];
        if (!repository_version(e->at[i], &number)) continue;
        (void)snprintf(under, sizeof under, "%s/%s", folder, e->at[i]);
        TRY(file_type(under, "model.onnx", &kind));
        *out = kind == S_IFREG;
    }
    return ERR_OK;
}

static Err scan_model(Repository *r, const char *folder) {
    char *real = realpath(folder, NULL);
    Err   e =
        real == NULL ? err_set(ERR_IO, "cannot access %s: %s", folder, strerror(errno)) : ERR_OK;
    if (real == NULL) return e;
    const char *slash = strrchr(real, '/');
    e = config_valid_name(slash + 1, strlen(slash + 1))
            ? repository_model(r, folder, slash + 1)
            : err_set(ERR_CONFIG, "%s: not a valid model name; set one: NAME=%s", folder, folder);
    free(real);
    return e;
}

Err repository_scan(Repository *r, const char *folder) {
    Entries e;
    bool    one = false;
    TRY(list_entries(r, folder, &e));
    TRY(is_model(folder, &e, &one));
    if (one) return scan_model(r, folder);
    for (uint32_t i = 0; i < e.n; i++) TRY(add_entry(r, folder, e.at[i]));
    return ERR_OK;
}
