// Profile, inside: what readers of profiles share.
#pragma once

#include "base/csv.h"
#include "base/json.h"
#include "cluster/profile/profiles.h"

typedef struct ProfileReader {
    ClusterProfiles      *p;
    const char           *name;  // of the file, for errors
    const ProfileOptions *o;
    Arena                *arena;
} ProfileReader;

bool profile_same(const char *a, const char *b);
// Found or added; PROFILE_NONE: its name is to be folded and is of no class.
MUST_USE Err profile_class(ProfileReader *r, const char *name, uint32_t *out);
MUST_USE Err profile_type_named(ProfileReader *r, const char *name, uint32_t *out);
void         profile_guess_pairs(ClusterProfiles *p, uint32_t class_);  // by our model

// Columns that must be there, in any order, as numbers of fields.
MUST_USE Err profile_columns(const Csv *c, const char *const *names, uint32_t n, uint32_t *out);
MUST_USE Err profile_row(Csv *c, uint32_t fields, bool *more);  // false: behind the last
MUST_USE Err profile_number(const Csv *c, uint32_t field, const char *what, double lo, double hi,
                            double *out);

// What Gavel measured, as it is read; then taken over into the reader's profiles.
enum { PROFILE_GAVEL_SCALES = PROFILE_COLUMNS - 1 };
typedef struct ProfileGavel {
    uint32_t scale[PROFILE_GAVEL_SCALES], n_scales;
    double   steps[PROFILE_CLASSES][2][PROFILE_GAVEL_SCALES];  // packed, apart; 0: not known
    struct ProfileGavelPair {
        double   sum;                             // of speeds where both fit
        uint32_t n, fits;                         // measurements
    } pair[2][PROFILE_CLASSES][PROFILE_CLASSES];  // as written; the other way round
} ProfileGavel;

MUST_USE Err profile_gavel_begin(ProfileReader *r, ProfileGavel **out);
MUST_USE Err profile_gavel_steps(ProfileReader *r, ProfileGavel *g, const char *type,
                                 const char *model, double scale, double steps);
MUST_USE Err profile_gavel_pair(ProfileReader *r, ProfileGavel *g, const char *const model[2],
                                const double speed[2]);
void         profile_gavel_take(ProfileReader *r, const ProfileGavel *g);

// Each takes the rows behind a header that was read.
MUST_USE Err profile_read_own(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_synergy(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_synergy_meta(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_gavel(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_gavel_pairs(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_json(ProfileReader *r, const char *text, size_t len);
MUST_USE Err profile_read_gavel_json(ProfileReader *r, const json_t *doc);
MUST_USE Err profile_read_chronus(ProfileReader *r, const json_t *doc);
