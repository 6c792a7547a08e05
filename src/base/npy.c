#include "base/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/fp.h"
#include "base/utf8.h"

enum { LEAD_BYTES = 12, HEADER_MAX = 1 << 16 };

// The Python dictionary literal before the array; untrusted input.
typedef struct NpyHeader {
    Tensor   t;           // type and shape, no data
    bool     fortran;     // Fortran order: the first index varies fastest
    bool     swap;        // big-endian
    char     text;        // 'U' or 'S' for strings, else '\0'
    uint64_t item_bytes;  // of an element in the file
    uint64_t data_bytes;
} NpyHeader;

typedef struct HeaderReader {
    const char *at, *end;
} HeaderReader;

static void skip_space(HeaderReader *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')) s->at++;
}

static bool take_char(HeaderReader *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool take_word(HeaderReader *s, const char *word) {
    skip_space(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

static bool take_string(HeaderReader *s, Str *out) {
    skip_space(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) return false;
    char        quote = *s->at++;
    const char *close = memchr(s->at, quote, (size_t)(s->end - s->at));
    if (close == NULL) return false;
    *out = (Str){s->at, (size_t)(close - s->at)};
    s->at = close + 1;
    return true;
}

static bool take_digits(const char **at, const char *end, int64_t *out) {
    const char *start = *at;
    for (*out = 0; *at < end && **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, **at - '0', out))
            return false;
    return *at > start;
}

static bool str_is(Str s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static Err bad(const char *what) { return err_set(ERR_PARSE, "the .npy header has %s", what); }

static Err parse_shape(HeaderReader *s, Tensor *t) {
    if (!take_char(s, '(')) return bad("a shape that is not a tuple");
    t->rank = 0;
    while (!take_char(s, ')')) {
        int64_t dim;
        skip_space(s);
        if (!take_digits(&s->at, s->end, &dim))
            return bad("a dimension that is not an int64 number");
        (void)take_word(s, "L");  // Python 2's long integers
        if (t->rank == TENSOR_MAX_RANK)
            return err_set(ERR_UNSUPPORTED, "an .npy array has more than %d dimensions",
                           TENSOR_MAX_RANK);
        t->dims[t->rank++] = dim;
        bool comma = take_char(s, ',');
        skip_space(s);
        if (!comma && (t->rank == 1 || s->at == s->end || *s->at != ')'))
            return bad("a shape without its commas");
    }
    return ERR_OK;
}

static Err parse_descr(HeaderReader *s, NpyHeader *h) {
    Str d;
    if (take_char(s, '[') || take_char(s, '('))
        return err_set(ERR_UNSUPPORTED,
                       "an .npy array has a structured type; save one field of it");
    if (!take_string(s, &d)) return bad("a type that is not a string");
    char order = d.len > 0 ? d.at[0] : '\0';
    bool ordered = order != '\0' && strchr("<>=|", order) != NULL;
    char plain[8] = "<";
    Str  kind = ordered ? (Str){d.at + 1, d.len - 1} : d;
    h->swap = order == '>';
    if (kind.len > 1 && (kind.at[0] == 'U' || kind.at[0] == 'S')) {
        const char *at = kind.at + 1;
        int64_t     n;
        if (!take_digits(&at, kind.at + kind.len, &n) || at != kind.at + kind.len || n > INT32_MAX)
            return bad("a string type with an invalid length");
        h->text = kind.at[0];
        h->t.dtype = DT_STR;
        h->item_bytes = (uint64_t)n * (h->text == 'U' ? 4 : 1);
        return ERR_OK;
    }
    if (kind.len > 0 && kind.len < sizeof plain - 1) {
        memcpy(plain + 1, kind.at, kind.len);
        h->t.dtype = dtype_from_numpy(plain, kind.len + 1);
        plain[0] = '|';
        if (h->t.dtype == DT_NONE) h->t.dtype = dtype_from_numpy(plain, kind.len + 1);
    }
    h->item_bytes = dtype_size(h->t.dtype);
    if (h->t.dtype != DT_NONE) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "an .npy array has the unsupported type '%.*s'",
                   d.len < 32 ? (int)d.len : 32, d.at);
}

static Err parse_order(HeaderReader *s, NpyHeader *h) {
    h->fortran = take_word(s, "True");
    if (!h->fortran && !take_word(s, "False"))
        return bad("a fortran_order that is not True or False");
    return ERR_OK;
}

static Err measure(NpyHeader *h) {
    if (h->text == '\0') {
        size_t bytes;
        TRY(tensor_measure(&h->t, &bytes));
        h->data_bytes = bytes;
        return ERR_OK;
    }
    size_t holders;  // at most 2^47, so the product below is exact or caught
    TRY(tensor_measure(&h->t, &holders));
    if (__builtin_mul_overflow((uint64_t)tensor_count(&h->t), h->item_bytes, &h->data_bytes))
        return err_set(ERR_LIMIT, "an .npy array needs more bytes than there are");
    return ERR_OK;
}

static Err parse_header(const char *text, size_t len, NpyHeader *h) {
    HeaderReader s = {text, text + len};
    unsigned     seen = 0;
    *h = (NpyHeader){0};
    if (!take_char(&s, '{')) return bad("no dictionary");
    while (!take_char(&s, '}')) {
        Str key;
        if (!take_string(&s, &key) || !take_char(&s, ':')) return bad("no key where one should be");
        unsigned bit = str_is(key, "descr")           ? 1
                       : str_is(key, "fortran_order") ? 2
                       : str_is(key, "shape")         ? 4
                                                      : 0;
        if (bit == 0 || (seen & bit) != 0) return bad("an unknown or repeated key");
        seen |= bit;
        TRY(bit == 1 ? parse_descr(&s, h) : bit == 2 ? parse_order(&s, h) : parse_shape(&s, &h->t));
        skip_space(&s);
        if (!take_char(&s, ',') && (s.at == s.end || *s.at != '}'))
            return bad("no comma after a value");
    }
    if (seen != 7) return bad("no descr, fortran_order or shape");
    skip_space(&s);
    if (s.at != s.end) return bad("text after its dictionary");
    return measure(h);
}

// Start and length of the header literal, from the first bytes of a file (up to LEAD_BYTES).
static Err parse_lead(const unsigned char *b, size_t len, size_t *start, size_t *text_len) {
    if (len < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return err_set(ERR_PARSE, "this is not an .npy file; numpy.save writes them");
    if (b[6] < 1 || b[6] > 3)
        return err_set(ERR_UNSUPPORTED, "unsupported .npy version %d.%d; versions 1 to 3 are read",
                       b[6], b[7]);
    *start = b[6] == 1 ? 10 : LEAD_BYTES;
    if (len < *start) return err_set(ERR_PARSE, "the .npy file ends inside its header");
    *text_len = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) *text_len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (*text_len > HEADER_MAX)
        return err_set(ERR_LIMIT, "the .npy header claims %zu bytes; the limit is %d", *text_len,
                       HEADER_MAX);
    return ERR_OK;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied without conversion");

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

// C-order index of the i-th element of a Fortran-order array.
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
        for (size_t i = 0; i < n; i++) to[i] = to[i] != 0;  // C bool is 0 or 1
    out->data = to;
    return ERR_OK;
}

static uint32_t point_at(const unsigned char *p, bool big) {
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

// UTF-32 to UTF-8 in place: a code point takes at most four bytes in either.
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
    unsigned char lead[LEAD_BYTES];
    size_t        n = s->left < 10 ? s->left : 10, start, len, mark = a->used;
    TRY(take(s, lead, n));
    if (n == 10 && lead[6] > 1 && s->left >= 2) {
        TRY(take(s, lead + 10, 2));
        n = LEAD_BYTES;
    }
    TRY(parse_lead(lead, n, &start, &len));
    if (len > s->left) return err_set(ERR_PARSE, "the .npy file ends inside its header");
    char *text = arena_try_new(a, char, len);
    if (text == NULL) return err_set(ERR_LIMIT, "no memory for the header of an .npy file");
    TRY(take(s, text, len));
    TRY(parse_header(text, len, h));
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

static void write_header(FILE *f, const char *descr, const Tensor *t) {
    char text[320];  // rank 8 with 20 digits each and the keys
    int  n =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < t->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64 "%s", i > 0 ? ", " : "",
                      t->dims[i], t->rank == 1 ? "," : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    int padded = (10 + n + 1 + 63) / 64 * 64 - 10;  // the data starts at a multiple of 64 bytes
    (void)fwrite("\x93NUMPY\x01\x00", 1, 8, f);
    (void)fputc(padded & 255, f);
    (void)fputc(padded >> 8, f);
    (void)fprintf(f, "%-*s\n", padded - 1, text);
}

static uint32_t next_point(const char **at, const char *end) {
    uint32_t point = utf8_next(at, end);
    return point == UTF8_BAD ? 0xFFFD : point;
}

static size_t longest(const Str *s, size_t n) {
    size_t most = 1;
    for (size_t i = 0; i < n; i++) {
        size_t points = 0;
        if (s[i].len == 0) continue;  // its pointer may be NULL
        for (const char *at = s[i].at, *end = at + s[i].len; at < end; points++)
            (void)next_point(&at, end);
        if (points > most) most = points;
    }
    return most;
}

static void write_point(FILE *f, uint32_t point) {
    unsigned char b[4] = {(unsigned char)point, (unsigned char)(point >> 8),
                          (unsigned char)(point >> 16), 0};
    (void)fwrite(b, 1, sizeof b, f);
}

static Err write_text(FILE *f, const Tensor *t, size_t n) {
    const Str *s = t->data;
    size_t     most = longest(s, n);
    char       descr[32];
    if (most > UINT32_MAX / 4 / (n > 0 ? n : 1))  // every string takes as much as the longest
        return err_set(ERR_LIMIT, "%zu strings of up to %zu characters make a file over 4 GiB", n,
                       most);
    (void)snprintf(descr, sizeof descr, "<U%zu", most);
    write_header(f, descr, t);
    for (size_t i = 0; i < n; i++) {
        const char *at = s[i].len > 0 ? s[i].at : "", *end = at + s[i].len;
        for (size_t k = 0; k < most; k++) write_point(f, at < end ? next_point(&at, end) : 0);
    }
    return ERR_OK;
}

static Err write_tensor(FILE *f, const Tensor *t, size_t bytes) {
    if (t->dtype == DT_STR) return write_text(f, t, bytes / sizeof(Str));
    bool        widen = t->dtype == DT_BF16;
    const char *descr = dtype_numpy(widen ? DT_F32 : t->dtype);
    if (descr == NULL)
        return err_set(ERR_UNSUPPORTED, "NumPy files have no type for a %s", dtype_name(t->dtype));
    write_header(f, descr, t);
    if (!widen && bytes > 0) (void)fwrite(t->data, 1, bytes, f);
    for (size_t i = 0; widen && i < bytes / 2; i++) {
        float x = bf16_to_f32(((const uint16_t *)t->data)[i]);
        (void)fwrite(&x, sizeof x, 1, f);
    }
    return ERR_OK;
}

Err npy_write(const char *path, const Tensor *t) {
    size_t     bytes;
    AtomicFile f;
    Err        e = tensor_measure(t, &bytes);
    if (e == ERR_OK && t->data == NULL && bytes > 0)
        e = err_set(ERR_INVALID, "the tensor has a shape but no data");
    if (e != ERR_OK) return err_add(e, "cannot write %s", path);
    TRY(file_begin(&f, path));
    e = write_tensor(f.out, t, bytes);
    if (e == ERR_OK) return file_commit(&f);
    file_drop(&f);
    return err_add(e, "cannot write %s", path);
}
