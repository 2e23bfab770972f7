/* nn/data/sniff.h -- finds the KIND of a path from the names and the first bytes of its files. */
#ifndef NN_DATA_SNIFF_H
#define NN_DATA_SNIFF_H

#include "nn/data/dataset.h"

/* Look into a PATH that stands alone on the command line (data_is_path() of
 * nn/data/spec.h). 0 with the KIND, or -EINVAL or an errno with a sentence. */
__attribute__((warn_unused_result)) int data_sniff(const char *path, char kind[DATA_KIND_MAX],
                                                   char error[DATA_ERROR_MAX]);

#endif
