// Tutor: the rule with weights that suit a case better, as a teacher: what the network would have
// to say for the dispatcher to follow that rule.
#pragma once

#include "policy/chip/relmas/relmas.h"

enum { TUTORS = 10 };

RelmasSettings tutor_settings(const RelmasSettings *usual, uint32_t i);  // the i-th; 0: as usual

// says [n][RELMAS_OUTPUTS] of the tasks in the look, for a dispatcher with the settings of `rule`.
void tutor_says(const RelmasSettings *tutor, const RelmasScorer *rule,
                const RelmasObservation *look, float *says);
