import { allow } from './allow.js'
import { checkStore } from './check-store.js'
import type { Command } from './command.js'
import { deny } from './deny.js'
import { denylist } from './denylist.js'
import { doctor } from './doctor.js'
import { settle } from './settle.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [doctor, deny, allow, denylist, checkStore, settle]
