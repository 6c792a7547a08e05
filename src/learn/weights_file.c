#include "learn/weights_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

#define MAGIC "cotenant weights 1\n"

enum {
    MAGIC_LEN = sizeof MAGIC - 1,
    HEAD = MAGIC_LEN + 4 + 8,
    TAIL = 4,
    FACTS_MAX = 1 << 16,
};
static const size_t FILE_MAX = (size_t)1 << 30;

static uint32_t crc_more(uint32_t crc, const unsigned char *p, size_t n) {
    static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    for (size_t i = 0; i < n; i++) {
        crc = nibble[(crc ^ p[i]) & 15] ^ (crc >> 4);
        crc = nibble[(crc ^ (p[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return crc;
}

static void put(unsigned char *to, uint64_t v, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(const unsigned char *from, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) v |= (uint64_t)from[i] << (8 * i);
    return v;
}

static void write_some(FILE *f, uint32_t *crc, const void *data, size_t n) {
    *crc = crc_more(*crc, data, n);
    (void)fwrite(data, 1, n, f);  // file_commit reports errors
}

static bool key_char(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }

// Length of the line "key=value\n" at s, or 0 if it is none.
static size_t fact_len(const char *s, size_t *key_len) {
    size_t k = 0, n;
    while (key_char(s[k])) k++;
    *key_len = k;
    if (k == 0 || s[k] != '=') return 0;
    for (n = k + 1; (unsigned char)s[n] >= ' ' && s[n] != 127; n++) continue;
    return s[n] == '\n' ? n + 1 : 0;
}

static bool facts_sound(const char *s) {
    for (size_t n, k; *s != '\0'; s += n)
        if ((n = fact_len(s, &k)) == 0) return false;
    return true;
}

// The line in `facts` with this key, or NULL.
static const char *fact_find(const char *facts, const char *key, size_t key_len) {
    for (size_t n, k; *facts != '\0'; facts += n) {
        n = fact_len(facts, &k);
        if (n == 0) return NULL;
        if (k == key_len && memcmp(facts, key, k) == 0) return facts;
    }
    return NULL;
}

Err weights_save(const char *path, const char *facts, FloatVec params) {
    AtomicFile    f;
    unsigned char head[HEAD], word[4];
    uint32_t      crc = UINT32_MAX;
    size_t        len = strlen(facts);
    CHECK(facts_sound(facts) && len <= FACTS_MAX);
    if (!float_vec_finite(params))
        return err_set(ERR_INVALID, "%s: not written: a weight is infinite or NaN", path);
    memcpy(head, MAGIC, MAGIC_LEN);
    put(head + MAGIC_LEN, len, 4);
    put(head + MAGIC_LEN + 4, params.n, 8);
    TRY(file_begin(&f, path));
    write_some(f.out, &crc, head, HEAD);
    write_some(f.out, &crc, facts, len);
    for (size_t i = 0; i < params.n; i++) {
        uint32_t bits;
        memcpy(&bits, &params.at[i], sizeof bits);
        put(word, bits, 4);
        write_some(f.out, &crc, word, 4);
    }
    put(word, crc ^ UINT32_MAX, 4);
    (void)fwrite(word, 1, 4, f.out);
    return file_commit(&f);
}

Err weights_check_target(const char *path) {
    char   head[MAGIC_LEN - 2];
    FILE  *f = NULL;
    size_t len = 0;
    if (access(path, F_OK) != 0) return ERR_OK;
    TRY(file_open(path, &f, &len));
    bool ours = len == 0 || (fread(head, 1, sizeof head, f) == sizeof head &&
                             memcmp(head, MAGIC, sizeof head) == 0);
    (void)fclose(f);
    if (ours) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s is not a weights file and is left as it is; name another file with -o, or "
                   "remove it",
                   path);
}

static Err check_head(const char *name, const unsigned char *p, size_t len, size_t *facts,
                      size_t *floats) {
    if (len < HEAD + TAIL || memcmp(p, MAGIC, MAGIC_LEN - 2) != 0)
        return err_set(ERR_PARSE, "%s: not a weights file: it does not begin with \"%.*s\"", name,
                       MAGIC_LEN - 1, MAGIC);
    if (memcmp(p, MAGIC, MAGIC_LEN) != 0)
        return err_set(ERR_UNSUPPORTED,
                       "%s: unsupported weights version; this program reads version %c", name,
                       MAGIC[MAGIC_LEN - 2]);
    uint64_t f = get(p + MAGIC_LEN, 4), n = get(p + MAGIC_LEN + 4, 8);
    if (f > FACTS_MAX || n > FILE_MAX / 4)
        return err_set(ERR_LIMIT, "%s: corrupt, or too large: %" PRIu64 " floats", name, n);
    uint64_t need = HEAD + f + 4 * n + TAIL;
    if (need != len)
        return err_set(ERR_PARSE,
                       "%s: %s: %zu bytes where its header promises %" PRIu64 "; copy it again",
                       name, len < need ? "truncated" : "something follows the weights", len, need);
    uint32_t want = (uint32_t)get(p + len - TAIL, 4);
    uint32_t have = crc_more(UINT32_MAX, p, len - TAIL) ^ UINT32_MAX;
    if (want != have)
        return err_set(ERR_PARSE, "%s: corrupt: checksum %08" PRIx32 ", expected %08" PRIx32, name,
                       have, want);
    *facts = f;
    *floats = n;
    return ERR_OK;
}

static Err check_facts(const char *name, const char *facts, const char *expect) {
    for (size_t n, k; *expect != '\0'; expect += n) {
        n = fact_len(expect, &k);
        CHECK(n > 0);
        const char *found = fact_find(facts, expect, k);
        int         want = (int)(n - k - 2);
        if (found == NULL)
            return err_set(ERR_INVALID,
                           "%s: weights of another network: %.*s is not given, "
                           "expected %.*s",
                           name, (int)k, expect, want, expect + k + 1);
        size_t found_key, found_len = fact_len(found, &found_key);
        if (found_len != n || memcmp(found, expect, n) != 0)
            return err_set(
                ERR_INVALID, "%s: weights of another network: %.*s is %.*s, expected %.*s", name,
                (int)k, expect, (int)(found_len - k - 2), found + k + 1, want, expect + k + 1);
    }
    return ERR_OK;
}

static Err read_floats(const char *name, const unsigned char *p, FloatVec b) {
    for (size_t i = 0; i < b.n; i++) {
        uint32_t bits = (uint32_t)get(p + 4 * i, 4);
        memcpy(&b.at[i], &bits, sizeof bits);
        if (!isfinite(b.at[i]))
            return err_set(ERR_INVALID, "%s: weight %zu is infinite or NaN", name, i);
    }
    return ERR_OK;
}

Err weights_parse(const char *name, const void *bytes, size_t len, const char *expect, size_t n,
                  Arena *a, WeightsFile *out) {
    const unsigned char *p = bytes;
    size_t               facts_len, floats;
    TRY(check_head(name, p, len, &facts_len, &floats));
    char  *facts = arena_try_new(a, char, facts_len + 1);
    float *at = arena_try(a, floats, sizeof *at, 64);
    if (facts == NULL || at == NULL)
        return err_set(ERR_LIMIT, "%s: no memory for %zu weights", name, floats);
    memcpy(facts, p + HEAD, facts_len);
    if (strlen(facts) != facts_len || !facts_sound(facts))
        return err_set(ERR_PARSE, "%s: its metadata is not lines of key=value", name);
    TRY(check_facts(name, facts, expect));
    if (n != 0 && n != floats)
        return err_set(ERR_INVALID, "%s: weights of another network: %zu numbers, expected %zu",
                       name, floats, n);
    FloatVec b = {at, floats};
    TRY(read_floats(name, p + HEAD + facts_len, b));
    *out = (WeightsFile){facts, b};
    return ERR_OK;
}

typedef struct LoadArgs {
    const char  *expect;
    size_t       n;
    Arena       *arena;
    WeightsFile *out;
} LoadArgs;

static Err parse_file(void *ctx, const char *path, char *bytes, size_t len) {
    LoadArgs *l = ctx;
    return weights_parse(path, bytes, len, l->expect, l->n, l->arena, l->out);
}

Err weights_load(const char *path, const char *expect, size_t n, Arena *a, WeightsFile *out) {
    return file_visit(path, FILE_MAX, parse_file, &(LoadArgs){expect, n, a, out});
}

const char *weights_metadata(const WeightsFile *w, const char *key, Arena *a) {
    size_t      k = strlen(key), found;
    const char *line = fact_find(w->facts, key, k);
    if (line == NULL) return NULL;
    return arena_printf(a, "%.*s", (int)(fact_len(line, &found) - k - 2), line + k + 1);
}
