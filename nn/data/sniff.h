/* nn/data/sniff.h -- finds the KIND of a path from the names and the first bytes of its files. */
#ifndef NN_DATA_SNIFF_H
#define NN_DATA_SNIFF_H

#include "nn/data/dataset.h"

/* Detects the KIND of a spec that is a PATH without KIND (data_is_path() of nn/data/spec.h).
 * Returns 0, or -EINVAL or another negative errno with a message. */
__attribute__((warn_unused_result)) int data_sniff(const char *path, char kind[DATA_KIND_MAX],
                                                   char error[DATA_ERROR_MAX]);

#endif
