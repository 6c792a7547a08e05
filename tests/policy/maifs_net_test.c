#include "policy/cluster/maifs/maifs_net.h"

#include <stdlib.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/maifs_net_int.h"
#include "tests/learn/gradient.h"
#include "tests/runner.h"

enum { SERVERS = 5, JOBS = 7, OFFERS = 90, PAIRS = 9, CACHE = 1 << 16 };

typedef struct NetCase {
    MaifsNet     net;
    MaifsInput   in;
    float        servers[SERVERS * MAIFS_SERVER], jobs[JOBS * MAIFS_JOB], queue[MAIFS_QUEUE];
    MaifsOfferAt at[OFFERS];
    float        features[OFFERS * MAIFS_OFFER];
    float       *w, *cache;
    float        u[JOBS], f[OFFERS], left[PAIRS * 4], right[PAIRS * 4];
    float        du[JOBS], df[OFFERS], d_left[PAIRS * 4], d_right[PAIRS * 4];
} NetCase;

static NetCase net_case;
static float   cache[CACHE], parameters[CACHE], gradients[CACHE];

static void open_case(MaifsNet net, uint64_t seed, float size) {
    Rng      rng = {seed};
    NetCase *s = &net_case;
    *s = (NetCase){.net = net, .w = parameters, .cache = cache};
    s->in = (MaifsInput){.servers = s->servers,
                         .jobs = s->jobs,
                         .queue = s->queue,
                         .n_servers = SERVERS,
                         .n_jobs = JOBS};
    assert_true(maifs_net_params(&net) <= CACHE);
    assert_true(maifs_net_cache(&net, SERVERS, JOBS) <= CACHE);
    gradient_fill(&rng, s->servers, SERVERS * MAIFS_SERVER, 1);
    gradient_fill(&rng, s->jobs, JOBS * MAIFS_JOB, 1);
    gradient_fill(&rng, s->queue, MAIFS_QUEUE, 1);
    gradient_fill(&rng, s->features, OFFERS * MAIFS_OFFER, 1);
    gradient_fill(&rng, s->du, JOBS, 1);
    gradient_fill(&rng, s->df, OFFERS, 1);
    gradient_fill(&rng, s->d_left, PAIRS * 4, 1);
    gradient_fill(&rng, s->d_right, PAIRS * 4, 1);
    for (uint32_t i = 0; i < OFFERS; i++)
        s->at[i] =
            (MaifsOfferAt){(uint32_t)rng_below(&rng, SERVERS), (uint32_t)rng_below(&rng, JOBS)};
    gradient_fill(&rng, s->w, maifs_net_params(&net), size);
}

static MaifsNet small(bool attention, uint32_t rounds) {
    return (MaifsNet){
        .width = 8, .heads = 2, .rounds = rounds, .hidden = 8, .rank = 4, .attention = attention};
}

static void answer(NetCase *s) {
    maifs_net_observe(&s->net, s->w, &s->in, s->cache, s->u);
    maifs_net_price(&s->net, s->w, s->cache, OFFERS, s->at, s->features, s->f);
    maifs_net_pair(&s->net, s->w, s->cache, PAIRS, s->at, s->left, s->right);
}

static double dot(size_t n, const float *a, const float *b) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static double loss(void *ctx) {
    NetCase *s = ctx;
    answer(s);
    return dot(JOBS, s->u, s->du) + dot(OFFERS, s->f, s->df) + dot(PAIRS * 4, s->left, s->d_left) +
           dot(PAIRS * 4, s->right, s->d_right);
}

static void backward(NetCase *s) {
    const MaifsNet *net = &s->net;
    memset(gradients, 0, sizeof gradients);
    answer(s);
    maifs_net_back_begin(net, s->cache);
    maifs_net_price_back(net, s->w, gradients, s->cache, OFFERS, s->at, s->features, s->df);
    maifs_net_pair_back(net, s->w, gradients, s->cache, PAIRS, s->at, s->d_left, s->d_right);
    maifs_net_observe_back(net, s->w, gradients, &s->in, s->cache, s->du);
}

// Every part of the parameters, so that none is missed.
static void test_gradients(void **state) {
    (void)state;
    const MaifsNet nets[] = {small(true, 1), small(true, 2), small(false, 1)};
    for (uint32_t v = 0; v < 3; v++) {
        Rng rng = {v + 40};
        open_case(nets[v], v + 1, 0.4f);
        for (uint32_t r = 0; r < nets[v].rounds; r++)  // gains far from 0, where norms are smooth
            for (uint32_t i = 0; i < nets[v].width; i++)
                parameters[maifs_net_parts(&nets[v]).norm[r] + i] += 1;
        backward(&net_case);
        static float g[CACHE];
        memcpy(g, gradients, sizeof g);
        MaifsParts   p = maifs_net_parts(&nets[v]);
        const size_t from[] = {p.server,   p.job,       p.queue,    p.attend[0],
                               p.norm[0],  p.by_server, p.by_job,   p.by_context,
                               p.by_offer, p.value,     p.straight, p.price,
                               p.reserved, p.left,      p.right,    p.n};
        for (size_t i = 0; i + 1 < sizeof from / sizeof *from; i++)
            gradient_check("w", loss, &net_case, parameters + from[i], g + from[i],
                           from[i + 1] - from[i], 60, &rng);
    }
}

static void test_says_nothing_at_first(void **state) {
    (void)state;
    Rng rng = {9};
    open_case(maifs_net_default(), 3, 1);
    maifs_net_init(&net_case.net, parameters, &rng);
    answer(&net_case);
    for (uint32_t i = 0; i < OFFERS; i++) assert_true(net_case.f[i] == 0);
    for (uint32_t i = 0; i < JOBS; i++) assert_true(net_case.u[i] == 0);
    for (uint32_t i = 0; i < PAIRS * 4; i++) assert_true(net_case.right[i] == 0);
    backward(&net_case);  // but it learns
    assert_true(float_vec_norm((FloatVec){gradients, maifs_net_params(&net_case.net)}) > 0);
}

typedef struct Slow {  // one number after the other, in doubles
    double z[SERVERS + 1][64], x[JOBS][64], context[64];
} Slow;

static void dense_slow(const float *w, size_t in, size_t out, const double *x, double *y) {
    for (size_t o = 0; o < out; o++) {
        y[o] = (double)w[in * out + o];
        for (size_t i = 0; i < in; i++) y[o] += x[i] * (double)w[i * out + o];
    }
}

static void encode_slow(const float *w, size_t in, size_t out, const float *x, double *y) {
    double wide[64];
    for (size_t i = 0; i < in; i++) wide[i] = (double)x[i];
    dense_slow(w, in, out, wide, y);
    for (size_t i = 0; i < out; i++) y[i] = y[i] > 0 ? y[i] : 0;
}

static void norm_slow(const float *w, size_t n, double *x) {
    double mean = 0, spread = 0;
    for (size_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) spread += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        x[i] = (double)w[i] * (x[i] - mean) / sqrt(spread + 1e-5) + (double)w[n + i];
}

static void attend_slow(const MaifsNet *net, const float *w, Slow *k, double out[SERVERS][64]) {
    size_t width = net->width, each = width / net->heads, layer = width * width + width;
    double q[64], key[SERVERS + 1][64], value[SERVERS + 1][64];
    for (uint32_t j = 0; j <= SERVERS; j++) {
        dense_slow(w + layer, width, width, k->z[j], key[j]);
        dense_slow(w + 2 * layer, width, width, k->z[j], value[j]);
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        double mixed[64] = {0};
        dense_slow(w, width, width, k->z[i], q);
        for (size_t h = 0; h < net->heads; h++) {
            double share[SERVERS + 1], sum = 0;
            for (uint32_t j = 0; j <= SERVERS; j++) {
                double like = 0;
                for (size_t c = h * each; c < (h + 1) * each; c++) like += q[c] * key[j][c];
                sum += share[j] = exp(like / sqrt((double)each));
            }
            for (uint32_t j = 0; j <= SERVERS; j++)
                for (size_t c = h * each; c < (h + 1) * each; c++)
                    mixed[c] += share[j] / sum * value[j][c];
        }
        dense_slow(w + 3 * layer, width, width, mixed, out[i]);
    }
}

static void see_slow(const NetCase *s, Slow *k) {
    const MaifsNet *net = &s->net;
    MaifsParts      p = maifs_net_parts(net);
    size_t          width = net->width;
    *k = (Slow){0};
    for (uint32_t i = 0; i < SERVERS; i++)
        encode_slow(s->w + p.server, MAIFS_SERVER, width, s->servers + (size_t)i * MAIFS_SERVER,
                    k->z[i]);
    encode_slow(s->w + p.queue, MAIFS_QUEUE, width, s->queue, k->z[SERVERS]);
    for (uint32_t j = 0; j < JOBS; j++)
        encode_slow(s->w + p.job, MAIFS_JOB, width, s->jobs + (size_t)j * MAIFS_JOB, k->x[j]);
    for (uint32_t r = 0; r < (net->attention ? net->rounds : 1); r++) {
        double out[SERVERS][64] = {{0}};
        if (net->attention) attend_slow(net, s->w + p.attend[r], k, out);
        for (uint32_t i = 0; i < SERVERS; i++) {
            for (size_t c = 0; c < width; c++) k->z[i][c] += out[i][c];
            norm_slow(s->w + p.norm[r], width, k->z[i]);
        }
    }
    for (uint32_t i = 0; net->attention && i < SERVERS; i++)
        for (size_t c = 0; c < width; c++) k->context[c] += k->z[i][c] / SERVERS;
}

static double column_slow(const NetCase *s, size_t layer, const double *x, size_t column,
                          size_t c) {
    size_t width = s->net.width, out = MAIFS_COLUMNS * (size_t)s->net.hidden;
    size_t o = column * s->net.hidden + c;
    double sum = (double)s->w[layer + width * out + o];
    for (size_t i = 0; i < width; i++) sum += x[i] * (double)s->w[layer + i * out + o];
    return sum;
}

static double relu_slow(double x) { return x > 0 ? x : 0; }

static double price_slow(const NetCase *s, const Slow *k, uint32_t m) {
    MaifsParts   p = maifs_net_parts(&s->net);
    size_t       h = s->net.hidden;
    const float *w = s->w + p.price, *offer = s->features + (size_t)m * MAIFS_OFFER;
    double       sum = (double)w[h];
    for (size_t c = 0; c < h; c++) {
        double v = column_slow(s, p.by_server, k->z[s->at[m].server], MAIFS_PRICE, c) +
                   column_slow(s, p.by_job, k->x[s->at[m].job], MAIFS_PRICE, c);
        for (size_t i = 0; i < MAIFS_OFFER; i++)
            v += (double)offer[i] * (double)s->w[p.by_offer + i * h + c];
        sum += relu_slow(v) * (double)w[c];
    }
    for (size_t i = 0; i < MAIFS_OFFER; i++) sum += (double)offer[i] * (double)s->w[p.straight + i];
    return sum;
}

static double value_slow(const NetCase *s, const Slow *k, uint32_t j) {
    MaifsParts   p = maifs_net_parts(&s->net);
    size_t       h = s->net.hidden;
    const float *w = s->w + p.value;
    double       sum = (double)w[h];
    for (size_t c = 0; c < h; c++) {
        double v = column_slow(s, p.by_job, k->x[j], MAIFS_VALUE, c);
        for (size_t i = 0; i < s->net.width; i++)
            v += k->context[i] * (double)s->w[p.by_context + i * h + c];
        sum += relu_slow(v) * (double)w[c];
    }
    return tanh(sum);
}

static double pair_slow(const NetCase *s, const Slow *k, uint32_t m, size_t layer, size_t r) {
    MaifsParts   p = maifs_net_parts(&s->net);
    size_t       h = s->net.hidden, rank = s->net.rank;
    const float *w = s->w + layer;
    double       sum = (double)w[h * rank + r];
    for (size_t c = 0; c < h; c++)
        sum += relu_slow(column_slow(s, p.by_server, k->z[s->at[m].server], MAIFS_PAIR, c) +
                         column_slow(s, p.by_job, k->x[s->at[m].job], MAIFS_PAIR, c)) *
               (double)w[c * rank + r];
    return sum;
}

static void near(double expected, float has) {
    if (fabs(expected - (double)has) > 1e-4 * (1 + fabs(expected)))
        fail_msg("%g, not %g", (double)has, expected);
}

static void test_equals_the_obvious_way(void **state) {
    (void)state;
    MaifsNet two = maifs_net_default();
    two.rounds = 2;
    const MaifsNet nets[] = {maifs_net_default(), two, small(true, 2), small(false, 1)};
    for (uint32_t v = 0; v < 4; v++) {
        static Slow k;
        open_case(nets[v], v + 5, 0.3f);
        answer(&net_case);
        see_slow(&net_case, &k);
        MaifsParts p = maifs_net_parts(&nets[v]);
        for (uint32_t m = 0; m < OFFERS; m++) near(price_slow(&net_case, &k, m), net_case.f[m]);
        for (uint32_t j = 0; j < JOBS; j++) near(value_slow(&net_case, &k, j), net_case.u[j]);
        for (uint32_t m = 0; m < PAIRS; m++)
            for (size_t r = 0; r < 4; r++) {
                near(pair_slow(&net_case, &k, m, p.left, r), net_case.left[m * 4 + r]);
                near(pair_slow(&net_case, &k, m, p.right, r), net_case.right[m * 4 + r]);
            }
    }
}

// Row i of `to` is row order[i] of what it was.
static void reorder(float *rows, uint32_t n, size_t width, const uint32_t *order) {
    float was[JOBS * MAIFS_JOB];
    memcpy(was, rows, n * width * sizeof *rows);
    for (uint32_t i = 0; i < n; i++)
        memcpy(rows + i * width, was + order[i] * width, width * sizeof *rows);
}

static void test_agents_and_jobs_may_change_places(void **state) {
    (void)state;
    static const uint32_t servers[SERVERS] = {3, 0, 4, 1, 2}, jobs[JOBS] = {6, 2, 0, 5, 1, 3, 4};
    for (uint32_t v = 0; v < 2; v++) {
        open_case(small(v == 0, 2), v + 11, 0.4f);
        answer(&net_case);
        NetCase was = net_case;
        reorder(net_case.servers, SERVERS, MAIFS_SERVER, servers);
        reorder(net_case.jobs, JOBS, MAIFS_JOB, jobs);
        for (uint32_t m = 0; m < OFFERS; m++)
            for (uint32_t i = 0; i < JOBS; i++) {
                if (i < SERVERS && servers[i] == was.at[m].server) net_case.at[m].server = i;
                if (jobs[i] == was.at[m].job) net_case.at[m].job = i;
            }
        answer(&net_case);
        for (uint32_t m = 0; m < OFFERS; m++) near((double)was.f[m], net_case.f[m]);
        for (uint32_t j = 0; j < JOBS; j++) near((double)was.u[jobs[j]], net_case.u[j]);
        for (uint32_t m = 0; m < PAIRS * 4; m++) {
            near((double)was.left[m], net_case.left[m]);
            near((double)was.right[m], net_case.right[m]);
        }
    }
}

// Without attention what one server sees changes nothing for another, with it something does.
static void test_attention_is_all_that_servers_share(void **state) {
    (void)state;
    for (uint32_t v = 0; v < 2; v++) {
        open_case(small(v == 0, 1), 21, 0.4f);
        answer(&net_case);
        NetCase was = net_case;
        for (uint32_t i = 0; i < MAIFS_SERVER; i++) net_case.servers[i] = -net_case.servers[i];
        net_case.queue[0] = -net_case.queue[0];
        answer(&net_case);
        uint32_t differ = 0;
        for (uint32_t m = 0; m < OFFERS; m++)
            differ += net_case.at[m].server != 0 && net_case.f[m] != was.f[m];
        for (uint32_t j = 0; j < JOBS; j++) differ += net_case.u[j] != was.u[j];
        assert_true(v == 0 ? differ > 0 : differ == 0);
    }
}

// Equal servers computed once give the same bits as each on its own.
static void test_kinds_equal_their_servers(void **state) {
    (void)state;
    for (uint32_t v = 0; v < 16; v++) {
        open_case(small(v % 2 == 0, 1 + v % 4 / 2), v + 51, 0.4f);
        for (uint32_t i = 1; i < SERVERS; i++)
            if ((v >> 2 & 1) != i % 2 || v >= 12)
                memcpy(net_case.servers + (size_t)i * MAIFS_SERVER, net_case.servers,
                       MAIFS_SERVER * sizeof(float));
        answer(&net_case);
        static NetCase was;
        was = net_case;
        net_case.in.merge = true;
        answer(&net_case);
        assert_memory_equal(net_case.u, was.u, sizeof was.u);
        assert_memory_equal(net_case.f, was.f, sizeof was.f);
        assert_memory_equal(net_case.left, was.left, sizeof was.left);
        assert_memory_equal(net_case.right, was.right, sizeof was.right);
    }
}

static void test_an_empty_cluster_or_queue(void **state) {
    (void)state;
    open_case(small(true, 2), 31, 0.4f);
    net_case.in.n_jobs = 0;
    maifs_net_observe(&net_case.net, net_case.w, &net_case.in, cache, net_case.u);
    maifs_net_price(&net_case.net, net_case.w, cache, 0, NULL, NULL, NULL);
    net_case.in = (MaifsInput){.servers = net_case.servers,
                               .jobs = net_case.jobs,
                               .queue = net_case.queue,
                               .n_jobs = JOBS};
    maifs_net_observe(&net_case.net, net_case.w, &net_case.in, cache, net_case.u);
    for (uint32_t j = 0; j < JOBS; j++) assert_true(isfinite(net_case.u[j]));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_says_nothing_at_first),
        cmocka_unit_test(test_equals_the_obvious_way),
        cmocka_unit_test(test_agents_and_jobs_may_change_places),
        cmocka_unit_test(test_attention_is_all_that_servers_share),
        cmocka_unit_test(test_kinds_equal_their_servers),
        cmocka_unit_test(test_an_empty_cluster_or_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
