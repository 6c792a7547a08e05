#include "serve/pbtxt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/spell.h"
#include "serve/config_int.h"
#include "serve/pbtxt_int.h"

typedef struct Known {
    const char *path;
    PbtxtTakes  takes;
} Known;

static const Known known[] = {
#define X(id, path, takes) [FIELD_##id] = {path, TAKES_##takes},
#include "serve/pbtxt.def"
#undef X
};
enum { N_KNOWN = sizeof known / sizeof *known };

static uint32_t find(const char *path) {
    for (uint32_t i = 0; i < N_KNOWN; i++)
        if (strcmp(known[i].path, path) == 0) return i;
    return N_KNOWN;
}

// A field beside it with a name that looks like it.
static const char *meant(const char *path) {
    const char *beside[N_KNOWN], *dot = strrchr(path, '.');
    size_t      n = 0, prefix = dot != NULL ? (size_t)(dot - path) + 1 : 0;
    for (uint32_t i = 0; i < N_KNOWN; i++)
        if (strncmp(known[i].path, path, prefix) == 0 &&
            strchr(known[i].path + prefix, '.') == NULL)
            beside[n++] = known[i].path + prefix;
    return spell_nearest(path + prefix, beside, n);
}

Err pbtxt_warn(PbtxtReader *r, uint32_t line, const char *what) {
    if (r->out->n_warnings == PBTXT_WARNINGS) return ERR_OK;
    const char *s = r->out->n_warnings + 1 < PBTXT_WARNINGS
                        ? config_say(r->text.arena, "%s:%u: %s", r->text.name, line, what)
                        : config_say(r->text.arena, "%s: there are more warnings", r->text.name);
    if (s == NULL) return err_set(ERR_LIMIT, "%s:%u: no memory", r->text.name, line);
    r->out->warnings[r->out->n_warnings++] = s;
    return ERR_OK;
}

Err pbtxt_doubt(PbtxtReader *r, uint32_t line, const char *what) {
    if (r->strict) return err_set(ERR_CONFIG, "%s:%u: %s", r->text.name, line, what);
    return pbtxt_warn(r, line, what);
}

static Err unknown(PbtxtReader *r, const PbtxtField *f) {
    char        what[512];
    const char *near = meant(r->path);
    (void)snprintf(what, sizeof what, "%.200s is not understood and has no effect%s%s%s", r->path,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
    return pbtxt_doubt(r, f->line, what);
}

static Err mistaken(const PbtxtReader *r, const PbtxtField *f, const char *takes) {
    return err_set(ERR_CONFIG, "%s:%u:%u: %s takes %s", r->text.name, f->line, f->column, r->path,
                   takes);
}

static Err whole(const PbtxtReader *r, const PbtxtField *f, int64_t *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(f->value, &end, 0);
    if (f->kind != PBTXT_NUMBER || end == f->value || *end != '\0')
        return mistaken(r, f, "a whole number");
    return errno == 0 ? ERR_OK : mistaken(r, f, "a whole number of at most 64 bits");
}

static Err truth(const PbtxtReader *r, const PbtxtField *f, int64_t *out) {
    static const char *const words[] = {"false", "true", "f", "t", "False", "True", "0", "1"};
    for (uint32_t i = 0; i < 8 && f->kind != PBTXT_STRING; i++)
        if (strcmp(words[i], f->value) == 0) {
            *out = i % 2;
            return ERR_OK;
        }
    return mistaken(r, f, "true or false");
}

static Err convert(const PbtxtReader *r, const PbtxtField *f, PbtxtTakes takes, int64_t *number) {
    switch (takes) {
    case TAKES_MESSAGE: return mistaken(r, f, "fields in { }");
    case TAKES_NUMBER: return whole(r, f, number);
    case TAKES_BOOL: return truth(r, f, number);
    case TAKES_STRING: return f->kind == PBTXT_STRING ? ERR_OK : mistaken(r, f, "a text in quotes");
    case TAKES_WORD:
        return f->kind == PBTXT_WORD ? ERR_OK : mistaken(r, f, "a word without quotes");
    }
    return ERR_OK;
}

static Err push(PbtxtReader *r, const PbtxtField *f) {
    size_t n = strlen(r->path), len = strlen(f->name);
    if (n + len + 2 > sizeof r->path)
        return err_set(ERR_CONFIG, "%s:%u:%u: this name is too long", r->text.name, f->line,
                       f->column);
    r->marks[r->depth] = n;
    (void)snprintf(r->path + n, sizeof r->path - n, "%s%s", n > 0 ? "." : "", f->name);
    return ERR_OK;
}

static Err take_open(PbtxtReader *r, const PbtxtField *f) {
    if (r->skip > 0) {
        r->skip++;
        return ERR_OK;
    }
    TRY(push(r, f));
    uint32_t id = find(r->path);
    if (id == N_KNOWN) {
        TRY(unknown(r, f));
        r->path[r->marks[r->depth]] = '\0';
        r->skip = 1;
        return ERR_OK;
    }
    if (known[id].takes != TAKES_MESSAGE)
        return mistaken(r, f, known[id].takes == TAKES_STRING ? "a text in quotes" : "one value");
    r->depth++;
    return pbtxt_open(r, id, f);
}

static Err take_close(PbtxtReader *r, const PbtxtField *f) {
    if (r->skip > 0) {
        r->skip--;
        return ERR_OK;
    }
    uint32_t id = find(r->path);
    r->path[r->marks[--r->depth]] = '\0';
    return pbtxt_close(r, id, f);
}

static Err take_value(PbtxtReader *r, const PbtxtField *f) {
    int64_t number = 0;
    if (r->skip > 0) return ERR_OK;
    TRY(push(r, f));
    uint32_t id = find(r->path);
    Err      e = id == N_KNOWN ? unknown(r, f) : convert(r, f, known[id].takes, &number);
    if (e == ERR_OK && id < N_KNOWN) e = pbtxt_value(r, id, f, number);
    r->path[r->marks[r->depth]] = '\0';
    return e;
}

static Err read_fields(PbtxtReader *r) {
    for (;;) {
        PbtxtField f;
        TRY(pbtxt_text_next(&r->text, &f));
        switch (f.event) {
        case PBTXT_END: return pbtxt_end(r);
        case PBTXT_OPEN: TRY(take_open(r, &f)); break;
        case PBTXT_CLOSE: TRY(take_close(r, &f)); break;
        case PBTXT_VALUE: TRY(take_value(r, &f)); break;
        }
    }
}

Err pbtxt_parse(const char *name, const char *text, size_t len, bool strict, Arena *a, Pbtxt *out) {
    Pbtxt       p = {.name = "", .platform = "", .backend = "", .filename = ""};
    PbtxtReader r = {.out = &p, .strict = strict};
    if (len > PBTXT_BYTES)
        return err_set(ERR_CONFIG, "%s: larger than %d bytes", name, PBTXT_BYTES);
    p.warnings = arena_try_new(a, const char *, PBTXT_WARNINGS);
    p.sets = arena_try_new(a, PbtxtSet, 2 * PBTXT_SETS);
    p.inputs = arena_try_new(a, PbtxtTensor, PBTXT_TENSORS);
    p.outputs = arena_try_new(a, PbtxtTensor, PBTXT_TENSORS);
    p.versions = arena_try_new(a, uint64_t, PBTXT_VERSIONS);
    if (p.warnings == NULL || p.sets == NULL || p.inputs == NULL || p.outputs == NULL ||
        p.versions == NULL)
        return err_set(ERR_LIMIT, "%s: no memory to read it", name);
    pbtxt_text_init(&r.text, name, text, len, a);
    TRY(read_fields(&r));
    *out = p;
    return ERR_OK;
}

Err pbtxt_read(const char *path, bool strict, Arena *a, Pbtxt *out) {
    Arena  scratch;
    char  *text = NULL;
    size_t len = 0;
    TRY(arena_init(&scratch, PBTXT_BYTES + 8192));
    Err e = file_read(path, PBTXT_BYTES, &scratch, &text, &len);
    if (e == ERR_OK) e = pbtxt_parse(path, text, len, strict, a, out);
    arena_finish(&scratch);
    return e;
}
