import { BUILT_PROGRAMS } from './built-programs.js'
import { openRoom, type RoomOptions } from './open-room.js'
import type { Room } from './ports.js'
import { readPageFiles } from './server/page-files.js'
import { type RoomServer, serveRoom } from './server/serve-room.js'

export interface PageOptions extends RoomOptions {
  /** 0 takes a free one. */
  readonly port: number
}

/**
 * Opens a control room and serves its page.
 * @throws {StartError} as `openRoom` and `serveRoom`, and when the page and the programs are not built
 * @throws {ActionError} as `openRoom`
 */
export async function openPage({ port, ...options }: PageOptions): Promise<RoomServer> {
  const files = await readPageFiles()
  let opening: Promise<Room> | undefined
  const room = () => {
    opening ??= openRoom({ ...BUILT_PROGRAMS, ...options })
    return opening
  }
  // A port in use is found before anything else is started.
  const { address, close } = await serveRoom({ room, files, port })
  try {
    const opened = await room()
    return { address, close: () => close().then(opened.close) }
  } catch (error) {
    await close()
    throw error
  }
}
