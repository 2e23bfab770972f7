/* peer/cmd/duration.c -- reads an option that is a time, and reports an invalid value on stderr. */
#include "peer/cmd/duration.h"

#include "peer/uv/settings.h"

int cmd_duration(const struct options *o, const char *name, int64_t *us)
{
    char error[SETTINGS_ERROR_MAX];
    return settings_duration(o, name, us, error) == 0 ? CMD_OK
                                                      : cmd_fail(o, CMD_USAGE, "%s", error);
}
