#include "base/npy.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/npy_header.h"
#include "base/utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are copied as they lie in files");

typedef struct Source {  // a file, or bytes when f is NULL
    FILE                *f;
    const unsigned char *at;
    size_t               left;
} Source;

static Err take(Source *s, void *to, size_t n) {
    if (n > s->left) return err_set(ERR_PARSE, "the .npy file ends too early");
    if (n == 0) return ERR_OK;
    if (s->f == NULL)
        memcpy(to, s->at, n);
    else if (fread(to, 1, n, s->f) != n)
        return err_set(ERR_IO, "reading failed: %s", ferror(s->f) ? strerror(errno) : "it shrank");
    if (s->f == NULL) s->at += n;
    s->left -= n;
    return ERR_OK;
}

static void *room(Arena *a, size_t count, size_t size) {
    void *p = arena_try(a, count, size, TENSOR_ALIGN);
    if (p == NULL)
        (void)err_set(ERR_LIMIT, "no memory for the %zu elements of an .npy array", count);
    return p;
}

// Where the file's i-th element goes when its first index moves fastest.
static size_t from_fortran(const Tensor *t, size_t i) {
    size_t  at = 0;
    int64_t stride = tensor_count(t);
    for (int32_t d = 0; d < t->rank; d++) {
        size_t dim = (size_t)t->dims[d];
        stride /= t->dims[d];
        at += i % dim * (size_t)stride;
        i /= dim;
    }
    return at;
}

static void swap_bytes(unsigned char *p, size_t bytes, size_t unit) {
    for (unsigned char *end = p + bytes; p < end; p += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            unsigned char low = p[i];
            p[i] = p[unit - 1 - i];
            p[unit - 1 - i] = low;
        }
}

static Err read_numbers(Source *s, const NpyHeader *h, Arena *a, Tensor *out) {
    size_t         size = dtype_size(out->dtype), n = (size_t)tensor_count(out), bytes = n * size;
    unsigned char *to = room(a, n, size);
    if (to == NULL) return ERR_LIMIT;
    size_t         mark = a->used;
    unsigned char *from = h->fortran && out->rank > 1 ? room(a, n, size) : to;
    if (from == NULL) return ERR_LIMIT;
    TRY(take(s, from, bytes));
    if (from != to)
        for (size_t i = 0; i < n; i++)
            memcpy(to + from_fortran(out, i) * size, from + i * size, size);
    arena_rewind(a, mark);
    bool complex = out->dtype == DT_C64 || out->dtype == DT_C128;
    if (h->swap) swap_bytes(to, bytes, complex ? size / 2 : size);
    if (out->dtype == DT_BOOL)
        for (size_t i = 0; i < n; i++) to[i] = to[i] != 0;  // any other byte is no C bool
    out->data = to;
    return ERR_OK;
}

static uint32_t point_at(const unsigned char *p, bool big) {
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

// A code point takes four bytes in the file and at most four in UTF-8, so it is rewritten in place.
static Str text_of(char *item, const NpyHeader *h) {
    size_t len = 0, used = 0;
    if (h->text == 'S') {
        for (len = h->item_bytes; len > 0 && item[len - 1] == '\0';) len--;
        return (Str){item, len};
    }
    for (size_t i = 0; i < h->item_bytes; i += 4) {
        uint32_t point = point_at((unsigned char *)item + i, h->swap);
        used += utf8_put(point, item + used);
        if (point != 0) len = used;
    }
    return (Str){item, len};
}

static Err read_text(Source *s, const NpyHeader *h, Arena *a, Tensor *out) {
    size_t n = (size_t)tensor_count(out);
    if (n > 0 && h->item_bytes == 0)
        return err_set(ERR_UNSUPPORTED, "an .npy array has strings of no length");
    Str  *strs = room(a, n, sizeof *strs);
    char *text = strs != NULL ? room(a, (size_t)h->data_bytes, 1) : NULL;
    if (text == NULL) return ERR_LIMIT;
    TRY(take(s, text, (size_t)h->data_bytes));
    for (size_t i = 0; i < n; i++)
        strs[h->fortran ? from_fortran(out, i) : i] = text_of(text + i * h->item_bytes, h);
    out->data = strs;
    return ERR_OK;
}

static Err read_header(Source *s, Arena *a, NpyHeader *h) {
    unsigned char lead[NPY_LEAD];
    size_t        n = s->left < 10 ? s->left : 10, start, len, mark = a->used;
    TRY(take(s, lead, n));
    if (n == 10 && lead[6] > 1 && s->left >= 2) {
        TRY(take(s, lead + 10, 2));
        n = NPY_LEAD;
    }
    TRY(npy_lead(lead, n, &start, &len));
    if (len > s->left) return err_set(ERR_PARSE, "the .npy file ends inside its header");
    char *text = arena_try_new(a, char, len);
    if (text == NULL) return err_set(ERR_LIMIT, "no memory for the header of an .npy file");
    TRY(take(s, text, len));
    TRY(npy_header_parse(text, len, h));
    arena_rewind(a, mark);
    if (h->data_bytes == s->left) return ERR_OK;
    return err_set(ERR_PARSE, "the .npy header promises %llu bytes of elements, %zu follow",
                   (unsigned long long)h->data_bytes, s->left);
}

static Err read_source(Source *s, Arena *a, Tensor *out) {
    NpyHeader h = {0};
    size_t    mark = a->used;
    Err       e = read_header(s, a, &h);
    Tensor    t = h.t;
    if (e == ERR_OK) e = h.text != '\0' ? read_text(s, &h, a, &t) : read_numbers(s, &h, a, &t);
    if (e == ERR_OK)
        *out = t;
    else
        arena_rewind(a, mark);
    return e;
}

Err npy_read_bytes(const void *bytes, size_t len, Arena *a, Tensor *out) {
    Source s = {NULL, bytes, len};
    return read_source(&s, a, out);
}

Err npy_read(const char *path, Arena *a, Tensor *out) {
    Source s = {0};
    TRY(file_open(path, &s.f, &s.left));
    Err e = read_source(&s, a, out);
    (void)fclose(s.f);
    return e == ERR_OK ? e : err_add(e, "%s", path);
}
