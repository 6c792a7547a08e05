#include "base/npy_header.h"

#include <string.h>

typedef struct Scan {
    const char *at, *end;
} Scan;

static void skip_space(Scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')) s->at++;
}

static bool take(Scan *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool take_word(Scan *s, const char *word) {
    skip_space(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

static bool take_string(Scan *s, Str *out) {
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

static Err parse_shape(Scan *s, Tensor *t) {
    if (!take(s, '(')) return bad("a shape that is not a tuple");
    t->rank = 0;
    while (!take(s, ')')) {
        int64_t dim;
        skip_space(s);
        if (!take_digits(&s->at, s->end, &dim))
            return bad("a dimension that is no number we can hold");
        (void)take_word(s, "L");  // Python 2 wrote long integers so
        if (t->rank == TENSOR_MAX_RANK)
            return err_set(ERR_UNSUPPORTED, "an .npy array has more than %d dimensions",
                           TENSOR_MAX_RANK);
        t->dims[t->rank++] = dim;
        bool comma = take(s, ',');
        skip_space(s);
        if (!comma && (t->rank == 1 || s->at == s->end || *s->at != ')'))
            return bad("a shape without its commas");
    }
    return ERR_OK;
}

static Err parse_descr(Scan *s, NpyHeader *h) {
    Str d;
    if (take(s, '[') || take(s, '('))
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
            return bad("a string type without a length we can hold");
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
    return err_set(ERR_UNSUPPORTED, "an .npy array has the type '%.*s', which we cannot hold",
                   d.len < 32 ? (int)d.len : 32, d.at);
}

static Err parse_order(Scan *s, NpyHeader *h) {
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

Err npy_header_parse(const char *text, size_t len, NpyHeader *h) {
    Scan     s = {text, text + len};
    unsigned seen = 0;
    *h = (NpyHeader){0};
    if (!take(&s, '{')) return bad("no dictionary");
    while (!take(&s, '}')) {
        Str key;
        if (!take_string(&s, &key) || !take(&s, ':')) return bad("no key where one should be");
        unsigned bit = str_is(key, "descr")           ? 1
                       : str_is(key, "fortran_order") ? 2
                       : str_is(key, "shape")         ? 4
                                                      : 0;
        if (bit == 0 || (seen & bit) != 0) return bad("an unknown or repeated key");
        seen |= bit;
        TRY(bit == 1 ? parse_descr(&s, h) : bit == 2 ? parse_order(&s, h) : parse_shape(&s, &h->t));
        skip_space(&s);
        if (!take(&s, ',') && (s.at == s.end || *s.at != '}')) return bad("no comma after a value");
    }
    if (seen != 7) return bad("no descr, fortran_order or shape");
    skip_space(&s);
    if (s.at != s.end) return bad("text after its dictionary");
    return measure(h);
}

Err npy_lead(const unsigned char *b, size_t len, size_t *start, size_t *text_len) {
    if (len < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return err_set(ERR_PARSE, "this is not an .npy file; numpy.save writes them");
    if (b[6] < 1 || b[6] > 3)
        return err_set(ERR_UNSUPPORTED, "the .npy version %d.%d is newer than ours", b[6], b[7]);
    *start = b[6] == 1 ? 10 : NPY_LEAD;
    if (len < *start) return err_set(ERR_PARSE, "the .npy file ends inside its header");
    *text_len = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) *text_len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (*text_len > NPY_HEADER_MAX)
        return err_set(ERR_LIMIT, "the .npy header claims %zu bytes; the limit is %d", *text_len,
                       NPY_HEADER_MAX);
    return ERR_OK;
}
