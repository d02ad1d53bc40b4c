import { openRoom, type RoomOptions } from './open-room.js'
import { readPageFiles } from './server/page-files.js'
import { type RoomServer, serveRoom } from './server/serve-room.js'

export interface PageOptions extends RoomOptions {
  /** 0 takes a free one. */
  readonly port: number
}

/**
 * Opens a control room and serves its page.
 * @throws {StartError} as `openRoom` and `serveRoom`, and when the page is not built
 * @throws {ActionError} as `openRoom`
 */
export async function openPage({ port, ...options }: PageOptions): Promise<RoomServer> {
  const files = await readPageFiles()
  const room = await openRoom(options)
  try {
    const { address, close } = await serveRoom({ room, files, port })
    return { address, close: () => close().then(room.close) }
  } catch (error) {
    await room.close()
    throw error
  }
}
