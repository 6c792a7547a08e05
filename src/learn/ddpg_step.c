#include <string.h>

#include "learn/ddpg.h"

// Six numbers (n, next_n, taught, reward, discount, weight), then x, action, teacher, next_x.
enum { HEAD = 6 };

size_t ddpg_step_size(const Actor *a, const DdpgStep *s) {
    size_t features = a->trunk.in, actions = a->actions;
    return HEAD + s->n * (features + actions * (s->teacher ? 2 : 1)) + s->next_n * features;
}

static float *append(float *to, const float *from, size_t n) {
    if (n > 0) memcpy(to, from, n * sizeof *to);
    return to + n;
}

void ddpg_step_write(const Actor *a, const DdpgStep *s, float *to) {
    size_t n = s->n, features = a->trunk.in, actions = a->actions;
    float  head[HEAD] = {(float)s->n, (float)s->next_n, s->teacher ? 1 : 0,
                         s->reward,   s->discount,      s->weight};
    to = append(to, head, HEAD);
    to = append(to, s->x, n * features);
    to = append(to, s->action, n * actions);
    if (s->teacher) to = append(to, s->teacher, n * actions);
    append(to, s->next_x, s->next_n * features);
}

DdpgStep ddpg_step_read(const Actor *a, const float *from) {
    DdpgStep s = {.n = (uint32_t)from[0],
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

float ddpg_return(const float *rewards, uint32_t n, float gamma, float *discount) {
    float sum = 0, so_far = 1;
    for (uint32_t i = 0; i < n; i++) {
        sum += so_far * rewards[i];
        so_far *= gamma;
    }
    *discount = so_far;
    return sum;
}
