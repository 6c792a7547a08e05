#include "learn/ddpg.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/fp.h"
#include "learn/adam.h"
#include "learn/ddpg_int.h"

DdpgOptions ddpg_defaults(Actor actor, Critic critic) {
    return (DdpgOptions){.actor = actor,
                         .critic = critic,
                         .batch = 64,
                         .items = 64,
                         .shards = 4,
                         .reproducible = true,
                         .twin = true,
                         .actor_every = 2,
                         .actor_rate = 1e-4f,
                         .critic_rate = 1e-3f,
                         .clip = 1,
                         .tau = 0.005f,
                         .huber = 1,
                         .target_noise = 0.1f,
                         .target_noise_clip = 0.3f};
}

static float *take(FloatVec *b, size_t n) {
    float *at = b->at;
    CHECK(n <= b->n);
    *b = (FloatVec){at + n, b->n - n};
    return at;
}

static void net_init(DdpgNet *net, FloatVec *from, size_t n) {
    net->w = (FloatVec){take(from, n), n};
    net->target = (FloatVec){take(from, n), n};
    net->m = (FloatVec){take(from, n), n};
    net->v = (FloatVec){take(from, n), n};
    net->count = take(from, 1);
}

static void nets_init(Ddpg *d, Arena *a) {
    size_t actor = actor_params(d->o.actor), critic = critic_params(d->o.critic);
    d->n_nets = d->o.twin ? 3 : 2;
    d->state = float_vec_new(a, 4 * (actor + (d->n_nets - 1) * critic) + d->n_nets + 1);
    d->gradient = float_vec_new(a, actor > critic ? actor : critic);
    FloatVec left = d->state;
    for (uint32_t i = 0; i < d->n_nets; i++) {
        DdpgNet *net = &d->nets[i];
        Rng      rng = rng_split(&d->rng);
        net_init(net, &left, i == DDPG_ACTOR ? actor : critic);
        if (i == DDPG_ACTOR)
            actor_init(d->o.actor, net->w.at, &rng);
        else
            critic_init(d->o.critic, net->w.at, &rng);
        float_vec_copy(net->target, net->w);
    }
    d->value_size = take(&left, 1);
}

Ddpg *ddpg_create(Arena *a, DdpgOptions o, uint64_t seed) {
    Ddpg *d = arena_new(a, Ddpg, 1);
    CHECK(o.batch > 0 && o.items > 0 && o.shards > 0 && o.shards <= o.batch);
    CHECK(o.critic.features == o.actor.trunk.in && o.critic.actions == o.actor.actions);
    d->o = o;
    d->rng = (Rng){seed};
    nets_init(d, a);
    d->shards = arena_new(a, DdpgShard, o.shards);
    for (uint32_t i = 0; i < o.shards; i++) ddpg_shard_init(&d->shards[i], &o, d, a);
    return d;
}

static void critic_shards(void *ctx, uint32_t index, uint32_t count) {
    Ddpg      *d = ctx;
    MatBackend was = mat_set_backend(d->o.reproducible ? MAT_REPRODUCIBLE : MAT_BLAS);
    for (uint32_t i = index; i < d->o.shards; i += count) {
        ddpg_shard_pack(d, i);
        ddpg_shard_critic(d, i);
    }
    mat_set_backend(was);
}

static void actor_shards(void *ctx, uint32_t index, uint32_t count) {
    Ddpg      *d = ctx;
    MatBackend was = mat_set_backend(d->o.reproducible ? MAT_REPRODUCIBLE : MAT_BLAS);
    for (uint32_t i = index; i < d->o.shards; i += count) {
        if (!d->by_value) ddpg_shard_pack(d, i);
        ddpg_shard_actor(d, i);
    }
    mat_set_backend(was);
}

static void run_shards(Ddpg *d, Team *team, TeamFn *fn) {
    if (team != NULL && d->o.reproducible)
        team_run(team, fn, d);
    else
        fn(d, 0, 1);
}

// Sums the shards' gradients in order and applies one Adam step; returns the norm before clipping.
static double net_step(Ddpg *d, uint32_t which, float rate) {
    DdpgNet    *net = &d->nets[which];
    FloatVec    g = float_vec_part(d->gradient, 0, net->w.n);
    AdamOptions adam = adam_defaults(rate);
    adam.decay = d->o.decay;
    float_vec_copy(g, d->shards[0].gradient[which]);
    for (uint32_t i = 1; i < d->o.shards; i++) float_vec_add(g, d->shards[i].gradient[which]);
    double norm = float_vec_clip(g, (double)d->o.clip);
    if (!isfinite(norm)) return norm;
    *net->count += 1;
    adam_step(&adam, (uint64_t)*net->count, net->w, g, net->m, net->v);
    return norm;
}

static void follow(Ddpg *d, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) float_vec_blend(d->nets[i].target, d->nets[i].w, d->o.tau);
}

static void begin(Ddpg *d, const DdpgTransition *steps, uint32_t n, bool value, bool teacher) {
    CHECK(n > 0 && n <= d->o.batch);
    d->steps = steps;
    d->n = n;
    d->by_value = value;
    d->by_teacher = teacher;
}

static void train_critics(Ddpg *d, Team *team, DdpgReport *out) {
    double size = 0;
    run_shards(d, team, critic_shards);
    for (uint32_t i = 0; i < d->o.shards; i++) {
        out->critic_loss += d->shards[i].critic_loss / d->n;
        out->value += d->shards[i].value / d->n;
        size += d->shards[i].value_size / d->n;
    }
    *d->value_size =
        *d->value_size > 0 ? 0.99f * *d->value_size + 0.01f * (float)size : (float)size;
    for (uint32_t i = DDPG_CRITIC; i < d->n_nets; i++) {
        double norm = net_step(d, i, d->o.critic_rate);
        if (!(norm <= out->critic_norm)) out->critic_norm = norm;  // also if NaN
    }
}

static void train_actor(Ddpg *d, Team *team, DdpgReport *out) {
    run_shards(d, team, actor_shards);
    for (uint32_t i = 0; i < d->o.shards; i++) {
        out->actor_loss += d->shards[i].actor_loss / d->n;
        out->imitate_loss += d->shards[i].imitate_loss / d->n;
    }
    out->actor_norm = net_step(d, DDPG_ACTOR, d->o.actor_rate);
}

void ddpg_train(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out) {
    FpuState was = fpu_flush_denormals();
    *out = (DdpgReport){0};
    begin(d, steps, n, true, d->o.imitate > 0);
    train_critics(d, team, out);
    uint64_t count = (uint64_t)*d->nets[DDPG_CRITIC].count, every = d->o.actor_every;
    if (every > 0 && count > d->o.actor_from && count % every == 0) train_actor(d, team, out);
    follow(d, 0, d->n_nets);
    fpu_restore(was);
}

void ddpg_imitate(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out) {
    FpuState was = fpu_flush_denormals();
    *out = (DdpgReport){0};
    begin(d, steps, n, false, true);
    train_actor(d, team, out);
    follow(d, DDPG_ACTOR, DDPG_ACTOR + 1);
    fpu_restore(was);
}

const float *ddpg_actor(const Ddpg *d) { return d->nets[DDPG_ACTOR].w.at; }
DdpgOptions *ddpg_options(Ddpg *d) { return &d->o; }
FloatVec     ddpg_state(Ddpg *d) { return d->state; }

void ddpg_set_actor(Ddpg *d, FloatVec w) {
    float_vec_copy(d->nets[DDPG_ACTOR].w, w);
    float_vec_copy(d->nets[DDPG_ACTOR].target, w);
}

// n, next_n, has teacher, reward, discount, weight; then x, action, teacher, next_x.
enum { HEAD = 6 };

size_t ddpg_transition_size(const Actor *a, const DdpgTransition *s) {
    size_t features = a->trunk.in, actions = a->actions;
    return HEAD + s->n * (features + actions * (s->teacher ? 2 : 1)) + s->next_n * features;
}

static float *append(float *to, const float *from, size_t n) {
    if (n > 0) memcpy(to, from, n * sizeof *to);
    return to + n;
}

void ddpg_transition_write(const Actor *a, const DdpgTransition *s, float *to) {
    size_t n = s->n, features = a->trunk.in, actions = a->actions;
    float  head[HEAD] = {(float)s->n, (float)s->next_n, s->teacher ? 1 : 0,
                         s->reward,   s->discount,      s->weight};
    to = append(to, head, HEAD);
    to = append(to, s->x, n * features);
    to = append(to, s->action, n * actions);
    if (s->teacher) to = append(to, s->teacher, n * actions);
    append(to, s->next_x, s->next_n * features);
}

DdpgTransition ddpg_transition_read(const Actor *a, const float *from) {
    DdpgTransition s = {.n = (uint32_t)from[0],
                        .next_n = (uint32_t)from[1],
                        .reward = from[3],
                        .discount = from[4],
                        .weight = from[5]};
    s.x = from + HEAD;
    s.action = s.x + (size_t)s.n * a->trunk.in;
    s.next_x = s.action + (size_t)s.n * a->actions;
    if (from[2] != 0) {
        s.teacher = s.next_x;
        s.next_x = s.teacher + (size_t)s.n * a->actions;
    }
    return s;
}
