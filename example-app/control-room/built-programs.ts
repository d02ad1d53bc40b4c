import { fileURLToPath } from 'node:url'
import type { RoomOptions } from './open-room.js'

const built = (name: string): string =>
  fileURLToPath(new URL(`./built/${name}.mjs`, import.meta.url))

/** The programs of the room's processes, which `npm run build:room` builds beside the page. */
export const BUILT_PROGRAMS: Pick<RoomOptions, 'programs' | 'tourProgram'> = {
  programs: { receiver: built('receiver'), answer: built('answer') },
  tourProgram: built('tour'),
}
