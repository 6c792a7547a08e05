#include "train/tutor.h"

RelmasSettings tutor_settings(const RelmasSettings *usual, uint32_t i) {
    RelmasSettings s = *usual;
    switch (i) {
    case 1: s.fit = 0; break;
    case 2: s.fit = 1.5; break;
    case 3: s.slack = 0.8; break;
    case 4: s.time = 0.3; break;
    case 5: s.time = 3; break;
    case 6: s.size = 1, s.size_units = 0.4; break;
    case 7: s.size = 2, s.size_units = 2; break;
    case 8: s.size = 6, s.size_units = 3; break;
    case 9: s.fit = 0, s.size = 2; break;
    default: break;
    }
    return s;
}

void tutor_says(const RelmasSettings *tutor, const RelmasScorer *rule,
                const RelmasObservation *look, float *says) {
    const RelmasSettings *own = &rule->cfg;
    float                 gain = (float)own->gain, usual = rule->table->usual;
    for (uint32_t i = 0; i < look->n; i++) {
        const RelmasTaskState *c = &look->at[i];
        float size = relmas_log2(c->work / usual + 1e-6f), slack = c->slack_ns / usual;
        float more = (relmas_size_weight(own, rule) - relmas_size_weight(tutor, rule)) * size +
                     (float)(own->slack - tutor->slack) * slack;
        float *to = says + (size_t)i * RELMAS_OUTPUTS;
        to[0] = relmas_clip(more / gain, -0.95f, 0.95f);
        to[1] = relmas_clip((float)(tutor->fit - own->fit) / gain, -0.95f, 0.95f);
        to[2] = relmas_clip((float)(tutor->time - own->time) / gain, -0.95f, 0.95f);
        to[3] = 0;
    }
}
