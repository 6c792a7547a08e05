#include <string.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/maifs_net_int.h"

void maifs_net_back_begin(const MaifsNet *net, float *cache) {
    MaifsCache k = maifs_net_cached(net, cache);
    size_t     columns = MAIFS_COLUMNS * (size_t)net->hidden;
    memset(k.d_by_server, 0, k.n_servers * columns * sizeof(float));
    memset(k.d_by_job, 0, k.n_jobs * columns * sizeof(float));
}

// Adds d_chunk to the gradients of server and job: the reverse of maifs_net_gather.
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
        maifs_net_gather(net, &k, MAIFS_PRICE, some, at + from, k.chunk);
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
        maifs_net_gather(net, &k, MAIFS_PAIR, some, at + from, k.chunk);
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
