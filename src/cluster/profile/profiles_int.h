// ProfileReader: shared by the readers of profile formats. profiles.c: names, columns, dispatch;
// the formats are in profile_own.c, profile_synergy.c, profile_gavel.c, profile_chronus.c and
// profile_pollux.c.
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
// Finds or adds a class; PROFILE_NONE: with `fold`, an unknown name.
MUST_USE Err profile_class(ProfileReader *r, const char *name, uint32_t *out);
MUST_USE Err profile_type_named(ProfileReader *r, const char *name, uint32_t *out);
void profile_guess_pairs(ClusterProfiles *p, uint32_t class_);  // by the model in profiles.c

// Field numbers of required columns, in any order.
MUST_USE Err profile_columns(const Csv *c, const char *const *names, uint32_t n, uint32_t *out);
MUST_USE Err profile_row(Csv *c, uint32_t fields, bool *more);  // *more false: after the last
MUST_USE Err profile_number(const Csv *c, uint32_t field, const char *what, double lo, double hi,
                            double *out);

// Gavel's measurements while they are read.
enum { PROFILE_GAVEL_SCALES = PROFILE_COLUMNS - 1 };
typedef struct ProfileGavel {
    uint32_t scale[PROFILE_GAVEL_SCALES], n_scales;
    double   steps[PROFILE_CLASSES][2]
                [PROFILE_GAVEL_SCALES];  // [0] on one server, [1] spread; 0: unknown
    struct ProfileGavelType {
        double   log_steps;  // sum over the models of the class that fit
        uint32_t n;
    } by_type[PROFILE_CLASSES][PROFILE_TYPES];  // of one GPU
    struct ProfileGavelPair {
        double   sum;                             // of rates where both fit
        uint32_t n, fits;                         // all; where both fit
    } pair[2][PROFILE_CLASSES][PROFILE_CLASSES];  // [0] as written, [1] reversed
} ProfileGavel;

MUST_USE Err profile_gavel_begin(ProfileReader *r, ProfileGavel **out);
MUST_USE Err profile_gavel_steps(ProfileReader *r, ProfileGavel *g, const char *type,
                                 const char *model, double scale, double steps);
MUST_USE Err profile_gavel_pair(ProfileReader *r, ProfileGavel *g, const char *const model[2],
                                const double speed[2]);
void         profile_gavel_take(ProfileReader *r, const ProfileGavel *g);

// Each reads the rows after the header.
MUST_USE Err profile_read_own(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_synergy(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_synergy_meta(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_gavel(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_gavel_pairs(ProfileReader *r, Csv *c);
MUST_USE Err profile_read_pollux(ProfileReader *r, const char *folder);
MUST_USE Err profile_read_json(ProfileReader *r, const char *text, size_t len);
MUST_USE Err profile_read_gavel_json(ProfileReader *r, const json_t *doc);
MUST_USE Err profile_read_chronus(ProfileReader *r, const json_t *doc);
