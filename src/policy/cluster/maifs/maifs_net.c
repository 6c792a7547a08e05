// What depends on a server or a job alone is computed once; an offer costs one small product and a
// sum, MAIFS_CHUNK offers at a time.
#include "policy/cluster/maifs/maifs_net.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "learn/activation.h"
#include "learn/multiversion.h"
#include "learn/repro_gemm.h"
#include "policy/cluster/maifs/maifs_net_int.h"

enum { LANES = 8, HEAD = 16 };  // HEAD: floats of a cache that hold n_servers and n_jobs
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int   LanesMask __attribute__((vector_size(LANES * sizeof(float))));

static size_t take(size_t *at, size_t n) {
    size_t from = *at;
    *at += n;
    return from;
}

MaifsParts maifs_net_parts(const MaifsNet *net) {
    CHECK(net->rounds >= 1 && net->rounds <= MAIFS_NET_ROUNDS && net->hidden % LANES == 0);
    CHECK(net->heads > 0 && net->width % net->heads == 0);
    MaifsParts p = {0};
    uint32_t   w = net->width, h = net->hidden;
    p.server = take(&p.n, dense_params((Dense){MAIFS_SERVER, w}));
    p.job = take(&p.n, dense_params((Dense){MAIFS_JOB, w}));
    p.queue = take(&p.n, dense_params((Dense){MAIFS_QUEUE, w}));
    for (uint32_t r = 0; r < net->rounds; r++) {
        p.attend[r] = take(&p.n, mha_params(maifs_attend(net)));
        p.norm[r] = take(&p.n, layer_norm_params(maifs_norm(net)));
    }
    p.by_server = take(&p.n, dense_params(maifs_by(net)));
    p.by_job = take(&p.n, dense_params(maifs_by(net)));
    p.by_context = take(&p.n, (size_t)w * h);
    p.by_offer = take(&p.n, (size_t)MAIFS_OFFER * h);
    p.value = take(&p.n, dense_params(maifs_last(net)));
    p.straight = take(&p.n, MAIFS_OFFER);
    p.price = take(&p.n, dense_params(maifs_last(net)));
    p.reserved = take(&p.n, dense_params(maifs_last(net)));
    p.left = take(&p.n, dense_params(maifs_factor(net)));
    p.right = take(&p.n, dense_params(maifs_factor(net)));
    return p;
}

size_t maifs_net_params(const MaifsNet *net) { return maifs_net_parts(net).n; }

MaifsOutputLayers maifs_net_output_layers(const MaifsNet *net) {
    MaifsParts p = maifs_net_parts(net);
    return (MaifsOutputLayers){p.value, p.straight, p.price};
}

// A matrix without bias, initialised like dense_init.
static void init_matrix(size_t in, size_t out, float *w, float gain, Rng *rng) {
    float limit = gain * sqrtf(3.0f / (float)in);
    for (size_t i = 0; i < in * out; i++) w[i] = limit * (2 * rng_unit(rng) - 1);
}

void maifs_net_init(const MaifsNet *net, float *w, Rng *rng) {
    MaifsParts  p = maifs_net_parts(net);
    const float relu = sqrtf(2);
    memset(w, 0, p.n * sizeof *w);
    dense_init((Dense){MAIFS_SERVER, net->width}, w + p.server, relu, rng);
    dense_init((Dense){MAIFS_JOB, net->width}, w + p.job, relu, rng);
    dense_init((Dense){MAIFS_QUEUE, net->width}, w + p.queue, relu, rng);
    for (uint32_t r = 0; r < net->rounds; r++) {
        mha_init(maifs_attend(net), w + p.attend[r], rng);
        layer_norm_init(maifs_norm(net), w + p.norm[r]);
    }
    dense_init(maifs_by(net), w + p.by_server, 1, rng);
    dense_init(maifs_by(net), w + p.by_job, 1, rng);
    init_matrix(net->width, net->hidden, w + p.by_context, 1, rng);
    init_matrix(MAIFS_OFFER, net->hidden, w + p.by_offer, 1, rng);
    dense_init(maifs_factor(net), w + p.left, 1,
               rng);  // a pair payoff is a product: 0, but with a gradient
}

// c NULL: counts only.
static float *part(float *c, size_t *at, size_t n) {
    size_t from = take(at, (n + 15) / 16 * 16);
    return c == NULL ? NULL : c + from;
}

static MaifsCache lay_out(const MaifsNet *net, uint32_t n_servers, uint32_t n_jobs, float *c) {
    MaifsCache     k = {.n_servers = n_servers, .n_jobs = n_jobs, .n = HEAD};
    AttentionShape size = maifs_attend_size(n_servers);
    size_t         w = net->width, h = net->hidden, servers = n_servers, jobs = n_jobs;
    for (uint32_t r = 0; r <= net->rounds; r++) k.z[r] = part(c, &k.n, (servers + 1) * w);
    for (uint32_t r = 0; r < net->rounds; r++) {
        k.attend[r] = part(c, &k.n, mha_cache_size(maifs_attend(net), &size));
        k.norm[r] = part(c, &k.n, layer_norm_cache_size(maifs_norm(net), servers));
    }
    k.sum = part(c, &k.n, servers * w);
    k.x = part(c, &k.n, jobs * w);
    k.context = part(c, &k.n, w);
    k.by_server = part(c, &k.n, servers * MAIFS_COLUMNS * h);
    k.by_job = part(c, &k.n, jobs * MAIFS_COLUMNS * h);
    k.by_context = part(c, &k.n, h);
    k.value = part(c, &k.n, jobs * h);
    k.u = part(c, &k.n, jobs);
    k.chunk = part(c, &k.n, MAIFS_CHUNK * h);
    k.kind = (uint32_t *)part(c, &k.n, servers + 1);
    k.table = (uint32_t *)part(c, &k.n, maifs_kind_slots(n_servers));
    k.features = part(c, &k.n, servers * MAIFS_SERVER);
    k.kinds = part(c, &k.n, (servers + 1) * w);
    k.of_kinds = part(c, &k.n, servers * MAIFS_COLUMNS * h);
    k.d_by_server = part(c, &k.n, servers * MAIFS_COLUMNS * h);
    k.d_by_job = part(c, &k.n, jobs * MAIFS_COLUMNS * h);
    k.d_chunk = part(c, &k.n, MAIFS_CHUNK * h);
    k.d_z = part(c, &k.n, (servers + 1) * w);
    k.d_sum = part(c, &k.n, servers * w);
    k.d_x = part(c, &k.n, jobs * w);
    k.d_context = part(c, &k.n, w);
    return k;
}

size_t maifs_net_cache(const MaifsNet *net, uint32_t n_servers, uint32_t n_jobs) {
    return lay_out(net, n_servers, n_jobs, NULL).n;
}

MaifsCache maifs_net_cached(const MaifsNet *net, float *cache) {
    uint32_t n[2];
    memcpy(n, cache, sizeof n);
    return lay_out(net, n[0], n[1], cache);
}

static void encode(uint32_t in, uint32_t width, const float *w, size_t rows, const float *x,
                   float *y) {
    dense_forward((Dense){in, width}, w, rows, mat(x, in), mat_out(y, width));
    activation_forward(ACTIVATION_RELU, rows * width, y, y);
}

static void attend_round(const MaifsNet *net, const float *w, const MaifsParts *p, uint32_t r,
                         const MaifsCache *k) {
    AttentionShape size = maifs_attend_size(k->n_servers);
    size_t         width = net->width, n = (size_t)k->n_servers * width;
    float         *from = k->z[r], *to = k->z[r + 1];
    if (net->attention) {
        mha_forward(maifs_attend(net), w + p->attend[r], &size, from, from, k->sum, k->attend[r]);
        for (size_t i = 0; i < n; i++) k->sum[i] += from[i];
        memcpy(to + n, from + n, width * sizeof *to);
    } else {
        memcpy(k->sum, from, n * sizeof *from);
    }
    layer_norm_forward(maifs_norm(net), w + p->norm[r], k->n_servers, k->sum, to, k->norm[r]);
}

// attend_round for one server of each kind, in place; all servers are keys. The queue's row is
// behind the kinds.
static void attend_round_kinds(const MaifsNet *net, const float *w, const MaifsParts *p, uint32_t r,
                               const MaifsCache *k, uint32_t n_kinds) {
    AttentionShape size = maifs_attend_size(k->n_servers);
    size_t         n = (size_t)n_kinds * net->width;
    size.queries = n_kinds;
    size.row_of = k->kind;
    size.rows = n_kinds + 1;
    if (net->attention) {
        mha_forward(maifs_attend(net), w + p->attend[r], &size, k->kinds, k->kinds, k->sum,
                    k->attend[r]);
        for (size_t i = 0; i < n; i++) k->sum[i] += k->kinds[i];
    } else {
        memcpy(k->sum, k->kinds, n * sizeof(float));
    }
    layer_norm_forward(maifs_norm(net), w + p->norm[r], n_kinds, k->sum, k->kinds, k->norm[r]);
}

// What the servers contribute, row by row.
static void observe_servers(const MaifsNet *net, const float *w, const MaifsParts *p,
                            const MaifsInput *in, const MaifsCache *k) {
    encode(MAIFS_SERVER, net->width, w + p->server, in->n_servers, in->servers, k->z[0]);
    for (uint32_t r = 0; r < maifs_z(net); r++) attend_round(net, w, p, r, k);
    dense_forward(maifs_by(net), w + p->by_server, in->n_servers,
                  mat(k->z[maifs_z(net)], net->width),
                  mat_out(k->by_server, MAIFS_COLUMNS * (size_t)net->hidden));
}

// The same bits from one row of each kind.
static void observe_kinds(const MaifsNet *net, const float *w, const MaifsParts *p,
                          const MaifsInput *in, const MaifsCache *k) {
    size_t   width = net->width, columns = MAIFS_COLUMNS * (size_t)net->hidden;
    uint32_t n = maifs_find_kinds(k, in->servers);
    encode(MAIFS_SERVER, net->width, w + p->server, n, k->features, k->kinds);
    memcpy(k->kinds + n * width, k->z[0] + in->n_servers * width, width * sizeof(float));
    k->kind[in->n_servers] = n;
    for (uint32_t r = 0; r < maifs_z(net); r++) attend_round_kinds(net, w, p, r, k, n);
    dense_forward(maifs_by(net), w + p->by_server, n, mat(k->kinds, width),
                  mat_out(k->of_kinds, columns));
    maifs_spread_kinds(k, width, k->kinds, k->z[maifs_z(net)]);
    maifs_spread_kinds(k, columns, k->of_kinds, k->by_server);
}

static void set_context(const MaifsNet *net, const MaifsCache *k) {
    const float *z = k->z[maifs_z(net)];
    float        share = 1.0f / (float)(k->n_servers > 0 ? k->n_servers : 1);
    memset(k->context, 0, net->width * sizeof *k->context);
    if (!net->attention) return;
    mat_add_rows(k->n_servers, net->width, mat(z, net->width), k->context);
    for (uint32_t i = 0; i < net->width; i++) k->context[i] *= share;
}

static void set_values(const MaifsNet *net, const float *w, const MaifsParts *p,
                       const MaifsCache *k) {
    size_t h = net->hidden;
    memset(k->by_context, 0, h * sizeof *k->by_context);
    repro_gemv(h, net->width, k->context, w + p->by_context, k->by_context);
    for (uint32_t j = 0; j < k->n_jobs; j++) {
        const float *from = k->by_job + ((size_t)j * MAIFS_COLUMNS + MAIFS_VALUE) * h;
        for (size_t c = 0; c < h; c++) k->value[j * h + c] = from[c] + k->by_context[c];
    }
    activation_forward(ACTIVATION_RELU, k->n_jobs * h, k->value, k->value);
    dense_forward(maifs_last(net), w + p->value, k->n_jobs, mat(k->value, h), mat_out(k->u, 1));
    activation_forward(ACTIVATION_TANH, k->n_jobs, k->u, k->u);
}

void maifs_net_observe(const MaifsNet *net, const float *w, const MaifsInput *in, float *cache,
                       float *u) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = lay_out(net, in->n_servers, in->n_jobs, cache);
    size_t     width = net->width, columns = MAIFS_COLUMNS * (size_t)net->hidden;
    memcpy(cache, &(uint32_t[2]){in->n_servers, in->n_jobs}, 2 * sizeof(uint32_t));
    encode(MAIFS_JOB, net->width, w + p.job, in->n_jobs, in->jobs, k.x);
    encode(MAIFS_QUEUE, net->width, w + p.queue, 1, in->queue, k.z[0] + in->n_servers * width);
    (in->merge ? observe_kinds : observe_servers)(net, w, &p, in, &k);
    dense_forward(maifs_by(net), w + p.by_job, in->n_jobs, mat(k.x, width),
                  mat_out(k.by_job, columns));
    set_context(net, &k);
    set_values(net, w, &p, &k);
    if (u != NULL && in->n_jobs > 0) memcpy(u, k.u, in->n_jobs * sizeof *u);
    mat_set_backend(was);
}

MULTIVERSION_BODY gather_body(size_t h, size_t column, const float *by_server, const float *by_job,
                              uint32_t n, const MaifsOfferAt *at, float *to) {
    for (uint32_t i = 0; i < n; i++, to += h) {
        const float *a = by_server + (at[i].server * (size_t)MAIFS_COLUMNS + column) * h;
        const float *b = by_job + (at[i].job * (size_t)MAIFS_COLUMNS + column) * h;
        for (size_t c = 0; c < h; c += LANES)
            *(Lanes *)(to + c) = *(const Lanes *)(a + c) + *(const Lanes *)(b + c);
    }
}
MULTIVERSION(static, gather,
             (size_t h, size_t column, const float *by_server, const float *by_job, uint32_t n,
              const MaifsOfferAt *at, float *to),
             (h, column, by_server, by_job, n, at, to))

// h [n][hidden]: sum of the contributions of server and job to an output.
static void gather_offers(const MaifsNet *net, const MaifsCache *k, uint32_t column, uint32_t n,
                          const MaifsOfferAt *at, float *h) {
    gather(net->hidden, column, k->by_server, k->by_job, n, at, h);
}

// out [n] = bias + w . relu(h): eight partial sums, added in order.
MULTIVERSION_BODY last_body(size_t h, const float *w, size_t n, const float *x, size_t ld,
                            float *out) {
    for (size_t i = 0; i < n; i++, x += ld) {
        Lanes sum = {0};
        for (size_t c = 0; c < h; c += LANES) {
            Lanes     v = *(const Lanes *)(x + c);
            LanesMask on = v > 0;
            sum += (Lanes)((LanesMask)v & on) * *(const Lanes *)(w + c);
        }
        float all = w[h];
        for (size_t l = 0; l < LANES; l++) all += sum[l];
        out[i] = all;
    }
}
MULTIVERSION(static, last,
             (size_t h, const float *w, size_t n, const float *x, size_t ld, float *out),
             (h, w, n, x, ld, out))

// f [n] += w . offer, summed the same way.
MULTIVERSION_BODY straight_body(const float *w, size_t n, const float *x, float *f) {
    for (size_t i = 0; i < n; i++, x += MAIFS_OFFER) {
        Lanes sum = {0};
        for (size_t c = 0; c < MAIFS_OFFER; c += LANES)
            sum += *(const Lanes *)(x + c) * *(const Lanes *)(w + c);
        float all = f[i];
        for (size_t l = 0; l < LANES; l++) all += sum[l];
        f[i] = all;
    }
}
MULTIVERSION(static, straight, (const float *w, size_t n, const float *x, float *f), (w, n, x, f))

void maifs_net_price(const MaifsNet *net, const float *w, float *cache, uint32_t n,
                     const MaifsOfferAt *at, const float *features, float *f) {
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     h = net->hidden;
    for (uint32_t from = 0; from < n; from += MAIFS_CHUNK) {
        uint32_t some = n - from < MAIFS_CHUNK ? n - from : MAIFS_CHUNK;
        gather_offers(net, &k, MAIFS_PRICE, some, at + from, k.chunk);
        repro_gemm(some, h, MAIFS_OFFER,
                   (GemmView){features + (size_t)from * MAIFS_OFFER, MAIFS_OFFER, 1},
                   (GemmView){w + p.by_offer, h, 1}, mat_out(k.chunk, h));
        last(h, w + p.price, some, k.chunk, h, f + from);
        straight(w + p.straight, some, features + (size_t)from * MAIFS_OFFER, f + from);
    }
}

void maifs_net_pair(const MaifsNet *net, const float *w, float *cache, uint32_t n,
                    const MaifsOfferAt *at, float *left, float *right) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     h = net->hidden, rank = net->rank;
    for (uint32_t from = 0; from < n; from += MAIFS_CHUNK) {
        uint32_t some = n - from < MAIFS_CHUNK ? n - from : MAIFS_CHUNK;
        gather_offers(net, &k, MAIFS_PAIR, some, at + from, k.chunk);
        activation_forward(ACTIVATION_RELU, some * h, k.chunk, k.chunk);
        dense_forward(maifs_factor(net), w + p.left, some, mat(k.chunk, h),
                      mat_out(left + from * rank, rank));
        dense_forward(maifs_factor(net), w + p.right, some, mat(k.chunk, h),
                      mat_out(right + from * rank, rank));
    }
    mat_set_backend(was);
}

void maifs_net_back_begin(const MaifsNet *net, float *cache) {
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     columns = MAIFS_COLUMNS * (size_t)net->hidden;
    memset(k.d_by_server, 0, k.n_servers * columns * sizeof(float));
    memset(k.d_by_job, 0, k.n_jobs * columns * sizeof(float));
}

// Adds d_chunk to the gradients of server and job: the reverse of gather_offers.
static void scatter(const MaifsNet *net, const MaifsCache *k, size_t column, uint32_t n,
                    const MaifsOfferAt *at) {
    size_t h = net->hidden;
    for (uint32_t i = 0; i < n; i++) {
        const float *d = k->d_chunk + i * h;
        float       *a = k->d_by_server + (at[i].server * (size_t)MAIFS_COLUMNS + column) * h;
        float       *b = k->d_by_job + (at[i].job * (size_t)MAIFS_COLUMNS + column) * h;
        for (size_t c = 0; c < h; c++) a[c] += d[c];
        for (size_t c = 0; c < h; c++) b[c] += d[c];
    }
}

// Through an output layer of one unit and the relu before it; h is the relu's input.
static void last_back(const MaifsNet *net, const float *w, float *gw, size_t n, const float *h,
                      size_t ld, const float *d, float *dh, size_t d_ld) {
    size_t hidden = net->hidden;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < hidden; c++) {
            float v = h[i * ld + c], on = v > 0 ? d[i] : 0;
            gw[c] += on * v;
            dh[i * d_ld + c] = on * w[c];
        }
    for (size_t i = 0; i < n; i++) gw[hidden] += d[i];
}

void maifs_net_price_back(const MaifsNet *net, const float *w, float *gw, float *cache, uint32_t n,
                          const MaifsOfferAt *at, const float *features, const float *df) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     h = net->hidden;
    for (uint32_t from = 0; from < n; from += MAIFS_CHUNK) {
        uint32_t some = n - from < MAIFS_CHUNK ? n - from : MAIFS_CHUNK;
        Mat      x = mat(features + (size_t)from * MAIFS_OFFER, MAIFS_OFFER);
        gather_offers(net, &k, MAIFS_PRICE, some, at + from, k.chunk);
        mat_mul(some, h, MAIFS_OFFER, x, mat(w + p.by_offer, h), 1, mat_out(k.chunk, h));
        last_back(net, w + p.price, gw + p.price, some, k.chunk, h, df + from, k.d_chunk, h);
        mat_mul_tn(MAIFS_OFFER, h, some, x, mat(k.d_chunk, h), 1, mat_out(gw + p.by_offer, h));
        mat_mul_tn(MAIFS_OFFER, 1, some, x, mat(df + from, 1), 1, mat_out(gw + p.straight, 1));
        scatter(net, &k, MAIFS_PRICE, some, at + from);
    }
    mat_set_backend(was);
}

void maifs_net_pair_back(const MaifsNet *net, const float *w, float *gw, float *cache, uint32_t n,
                         const MaifsOfferAt *at, const float *d_left, const float *d_right) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = maifs_net_cached(net, cache);
    Dense      d = maifs_factor(net);
    size_t     h = net->hidden, rank = net->rank;
    for (uint32_t from = 0; from < n; from += MAIFS_CHUNK) {
        uint32_t some = n - from < MAIFS_CHUNK ? n - from : MAIFS_CHUNK;
        Mat      dl = mat(d_left + from * rank, rank), dr = mat(d_right + from * rank, rank);
        gather_offers(net, &k, MAIFS_PAIR, some, at + from, k.chunk);
        activation_forward(ACTIVATION_RELU, some * h, k.chunk, k.chunk);
        dense_backward(d, w + p.left, gw + p.left, some, mat(k.chunk, h), dl,
                       mat_out(k.d_chunk, h));
        dense_backward(d, w + p.right, gw + p.right, some, mat(k.chunk, h), dr, mat_out(NULL, 0));
        mat_mul_nt(some, h, rank, dr, mat(w + p.right, rank), 1, mat_out(k.d_chunk, h));
        activation_backward(ACTIVATION_RELU, some * h, k.chunk, k.d_chunk, k.d_chunk);
        scatter(net, &k, MAIFS_PAIR, some, at + from);
    }
    mat_set_backend(was);
}

// Gradients of by_job and of the context, which is left in d_context [width].
static void value_back(const MaifsNet *net, const float *w, float *gw, const MaifsParts *p,
                       const MaifsCache *k, const float *du, float *d_context) {
    size_t h = net->hidden, width = net->width;
    float *d_u = k->d_chunk, *d_by = k->chunk;
    memset(d_context, 0, width * sizeof *d_context);
    memset(d_by, 0, h * sizeof *d_by);
    for (uint32_t j = 0; j < k->n_jobs; j++) {
        float *to = k->d_by_job + ((size_t)j * MAIFS_COLUMNS + MAIFS_VALUE) * h;
        activation_backward(ACTIVATION_TANH, 1, k->u + j, du + j, d_u);
        last_back(net, w + p->value, gw + p->value, 1, k->value + j * h, h, d_u, to, h);
        for (size_t c = 0; c < h; c++) d_by[c] += to[c];
    }
    mat_mul_tn(width, h, 1, mat(k->context, width), mat(d_by, h), 1,
               mat_out(gw + p->by_context, h));
    mat_mul_nt(1, width, h, mat(d_by, h), mat(w + p->by_context, h), 0, mat_out(d_context, width));
}

// d_z [n_servers + 1][width] from after a round to before it; the queue's row accumulates.
static void attend_round_back(const MaifsNet *net, const float *w, float *gw, const MaifsParts *p,
                              uint32_t r, const MaifsCache *k) {
    AttentionShape size = maifs_attend_size(k->n_servers);
    size_t         n = (size_t)k->n_servers * net->width;
    layer_norm_backward(maifs_norm(net), w + p->norm[r], gw + p->norm[r], k->n_servers, k->d_z,
                        k->d_sum, k->norm[r]);
    memcpy(k->d_z, k->d_sum, n * sizeof *k->d_z);
    if (net->attention)
        mha_backward(maifs_attend(net), w + p->attend[r], gw + p->attend[r], &size, k->z[r],
                     k->z[r], k->d_sum, k->d_z, k->d_z, k->attend[r]);
}

static void encode_back(uint32_t in, uint32_t width, const float *w, float *gw, size_t rows,
                        const float *x, const float *y, float *dy) {
    activation_backward(ACTIVATION_RELU, rows * width, y, dy, dy);
    dense_backward((Dense){in, width}, w, gw, rows, mat(x, in), mat(dy, width), mat_out(NULL, 0));
}

static void servers_back(const MaifsNet *net, const float *w, float *gw, const MaifsParts *p,
                         const MaifsInput *in, const MaifsCache *k, const float *d_context) {
    size_t width = net->width, columns = MAIFS_COLUMNS * (size_t)net->hidden, n = k->n_servers;
    float  share = 1.0f / (float)(n > 0 ? n : 1);
    dense_backward(maifs_by(net), w + p->by_server, gw + p->by_server, n,
                   mat(k->z[maifs_z(net)], width), mat(k->d_by_server, columns),
                   mat_out(k->d_z, width));
    memset(k->d_z + n * width, 0, width * sizeof *k->d_z);
    for (size_t i = 0; net->attention && i < n * width; i++)
        k->d_z[i] += share * d_context[i % width];
    for (uint32_t r = (uint32_t)maifs_z(net); r-- > 0;) attend_round_back(net, w, gw, p, r, k);
    encode_back(MAIFS_SERVER, net->width, w + p->server, gw + p->server, n, in->servers, k->z[0],
                k->d_z);
    encode_back(MAIFS_QUEUE, net->width, w + p->queue, gw + p->queue, 1, in->queue,
                k->z[0] + n * width, k->d_z + n * width);
}

void maifs_net_observe_back(const MaifsNet *net, const float *w, float *gw, const MaifsInput *in,
                            float *cache, const float *du) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    MaifsParts p = maifs_net_parts(net);
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     width = net->width, columns = MAIFS_COLUMNS * (size_t)net->hidden;
    float     *d_context = k.d_context;
    memset(d_context, 0, width * sizeof *d_context);
    if (du != NULL) value_back(net, w, gw, &p, &k, du, d_context);
    servers_back(net, w, gw, &p, in, &k, d_context);
    dense_backward(maifs_by(net), w + p.by_job, gw + p.by_job, k.n_jobs, mat(k.x, width),
                   mat(k.d_by_job, columns), mat_out(k.d_x, width));
    encode_back(MAIFS_JOB, net->width, w + p.job, gw + p.job, k.n_jobs, in->jobs, k.x, k.d_x);
    mat_set_backend(was);
}
