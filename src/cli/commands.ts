import { checkStore } from './check-store.js'
import type { Command } from './command.js'
import { doctor } from './doctor.js'
import { settle } from './settle.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [doctor, checkStore, settle]
