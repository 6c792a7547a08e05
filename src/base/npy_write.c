#include "base/npy.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/half.h"
#include "base/utf8.h"

static void write_header(FILE *f, const char *descr, const Tensor *t) {
    char text[320];  // rank 8 with 20 digits each and the keys
    int  n =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < t->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64 "%s", i > 0 ? ", " : "",
                      t->dims[i], t->rank == 1 ? "," : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    int padded = (10 + n + 1 + 63) / 64 * 64 - 10;  // numbers start on a multiple of 64
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
        if (s[i].len == 0) continue;  // such a string may point nowhere
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
    if (most > UINT32_MAX / 4 / (n > 0 ? n : 1))  // the longest string sets the size of all
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
    size_t  bytes;
    FileNew f;
    Err     e = tensor_measure(t, &bytes);
    if (e == ERR_OK && t->data == NULL && bytes > 0)
        e = err_set(ERR_INVALID, "the tensor has a shape but no numbers");
    if (e != ERR_OK) return err_add(e, "cannot write %s", path);
    TRY(file_begin(&f, path));
    e = write_tensor(f.out, t, bytes);
    if (e == ERR_OK) return file_commit(&f);
    file_drop(&f);
    return err_add(e, "cannot write %s", path);
}
