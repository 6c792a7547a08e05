// OracleFate: what is to become of a request.
#pragma once

typedef enum OracleFate {
    ORACLE_KEEP,   // it is to be in time
    ORACLE_SPARE,  // it may be, if that costs nobody anything
    ORACLE_LOSE,
} OracleFate;
