#include "compile/layer_profile.h"

#include "base/err.h"
#include "base/hash.h"

// A record: the format, then varints (LEB128), then a 64-bit FNV-1a checksum of all of it.
enum { FORMAT = 2, SUM_BYTES = 8, NUMBER_BYTES = 10, VERSION_NUMBERS = 9 };

_Static_assert(sizeof(Version) == 12, "a new field has to be written and read here");

typedef struct Reader {
    const uint8_t *at, *end;
    bool           bad;
} Reader;

static void put(uint8_t **at, uint64_t number) {
    for (; number >= 128; number >>= 7) *(*at)++ = (uint8_t)(number & 127) | 128;
    *(*at)++ = (uint8_t)number;
}

static uint64_t get(Reader *b, uint64_t most) {
    uint64_t number = 0;
    for (uint32_t shift = 0; shift < 63; shift += 7) {
        if (b->at == b->end) break;
        uint8_t byte = *b->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte >= 128) continue;
        if (number <= most) return number;
        break;
    }
    b->bad = true;
    return 0;
}

static void put_version(uint8_t **b, const Version *v) {
    put(b, v->algo);
    put(b, v->order);
    put(b, v->split);
    put(b, v->tile_rows);
    put(b, v->tile_vecs);
    put(b, v->pack);
    put(b, v->rows);
    put(b, v->columns);
    put(b, v->depth);
}

static Version get_version(Reader *b) {
    Version v = {0};
    v.algo = (uint8_t)get(b, ALGO_COUNT - 1);
    v.order = (uint8_t)get(b, ORDER_INPUT_STATIONARY);
    v.split = (uint8_t)get(b, SPLIT_BOTH);
    v.tile_rows = (uint8_t)get(b, UINT8_MAX);
    v.tile_vecs = (uint8_t)get(b, UINT8_MAX);
    v.pack = (uint8_t)get(b, UINT8_MAX);
    v.rows = (uint16_t)get(b, UINT16_MAX);
    v.columns = (uint16_t)get(b, UINT16_MAX);
    v.depth = (uint16_t)get(b, UINT16_MAX);
    return v;
}

static void put_candidate(uint8_t **b, const Candidate *c, uint32_t n_counts) {
    put_version(b, &c->version);
    put(b, c->tasks);
    put(b, c->traffic.l3_bytes);
    put(b, c->traffic.beyond_l2_bytes);
    for (uint32_t i = 0; i < n_counts; i++) put(b, (uint64_t)c->time_ns[i]);
}

static Candidate get_candidate(Reader *b, uint32_t n_counts) {
    Candidate c = {.version = get_version(b)};
    c.tasks = (uint32_t)get(b, UINT32_MAX);
    c.traffic.l3_bytes = (size_t)get(b, SIZE_MAX);
    c.traffic.beyond_l2_bytes = (size_t)get(b, SIZE_MAX);
    for (uint32_t i = 0; i < n_counts; i++) c.time_ns[i] = (TimeNs)get(b, INT64_MAX);
    return c;
}

static size_t most_bytes(const LayerProfile *p) {
    size_t numbers = 6 + PROFILE_COUNTS + PROFILE_KEPT;
    numbers += p->n * (size_t)(VERSION_NUMBERS + 3 + p->n_counts);
    return numbers * NUMBER_BYTES + SUM_BYTES;
}

Err layer_profile_encode(const LayerProfile *p, Arena *a, uint8_t **out, size_t *len) {
    CHECK(p->n <= PROFILE_CANDIDATES && p->n_counts <= PROFILE_COUNTS && p->n_kept <= PROFILE_KEPT);
    uint8_t *bytes = arena_try_new(a, uint8_t, most_bytes(p));
    if (bytes == NULL) return err_set(ERR_LIMIT, "no memory for %u candidates", p->n);
    uint8_t *b = bytes;
    put(&b, FORMAT);
    put(&b, p->n_counts);
    for (uint32_t i = 0; i < p->n_counts; i++) put(&b, p->counts[i]);
    put(&b, p->n_kept);
    for (uint32_t i = 0; i < p->n_kept; i++) put(&b, p->kept[i]);
    put(&b, (uint64_t)p->spent_ns);
    put(&b, p->finished);
    put(&b, p->n);
    for (uint32_t i = 0; i < p->n; i++) put_candidate(&b, &p->candidates[i], p->n_counts);
    uint64_t sum = hash_fnv(HASH_FNV_START, bytes, (size_t)(b - bytes));
    for (int i = 0; i < SUM_BYTES; i++) *b++ = (uint8_t)(sum >> (8 * i));
    *out = bytes;
    *len = (size_t)(b - bytes);
    return ERR_OK;
}

static bool is_whole(const uint8_t *bytes, size_t len) {
    uint64_t sum = 0;
    if (len <= SUM_BYTES) return false;
    for (int i = 0; i < SUM_BYTES; i++)
        sum |= (uint64_t)bytes[len - SUM_BYTES + (size_t)i] << (8 * i);
    return sum == hash_fnv(HASH_FNV_START, bytes, len - SUM_BYTES);
}

static void get_head(Reader *b, LayerProfile *p) {
    if (get(b, FORMAT) != FORMAT) b->bad = true;
    p->n_counts = (uint32_t)get(b, PROFILE_COUNTS);
    for (uint32_t i = 0; i < p->n_counts; i++) {
        p->counts[i] = (uint32_t)get(b, UINT32_MAX);
        if (p->counts[i] <= (i > 0 ? p->counts[i - 1] : 0)) b->bad = true;
    }
    p->n_kept = (uint32_t)get(b, PROFILE_KEPT);
    for (uint32_t i = 0; i < p->n_kept; i++) p->kept[i] = (uint32_t)get(b, PROFILE_CANDIDATES - 1);
    p->spent_ns = (TimeNs)get(b, INT64_MAX);
    p->finished = get(b, 1) == 1;
    p->n = (uint32_t)get(b, PROFILE_CANDIDATES);
    for (uint32_t i = 0; i < p->n_kept; i++)
        if (p->kept[i] >= p->n) b->bad = true;
}

bool layer_profile_decode(const uint8_t *bytes, size_t len, Arena *a, LayerProfile *out) {
    if (bytes == NULL || !is_whole(bytes, len)) return false;
    LayerProfile p = {0};
    size_t       mark = a->used;
    Reader       b = {.at = bytes, .end = bytes + len - SUM_BYTES};
    get_head(&b, &p);
    p.candidates = b.bad ? NULL : arena_try_new(a, Candidate, p.n);
    if (p.candidates == NULL) b.bad = true;
    for (uint32_t i = 0; !b.bad && i < p.n; i++) p.candidates[i] = get_candidate(&b, p.n_counts);
    if (b.bad || b.at != b.end) {
        arena_rewind(a, mark);
        return false;
    }
    *out = p;
    return true;
}
