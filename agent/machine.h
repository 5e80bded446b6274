/*
 * machine - a recorded machine that this agent plays (VERIFY_MACHINE names its folder).
 *
 * Tests walk every lane on hosts that nobody here has: stand-ins of tools and libraries
 * answer from the folder.  Whatever comes out says so and is never recordable.
 */
#ifndef AGENT_MACHINE_H
#define AGENT_MACHINE_H

#include <stdbool.h>
#include <sys/utsname.h>

/* The folder, NULL on a real host. */
const char *machine_dir(void);
/* Its name: the last part of the folder; "" on a real host. */
const char *machine_name(void);
/* uname of the host, or of the recorded machine.  -1 when neither can be read. */
int machine_uname(struct utsname *out);

#endif
