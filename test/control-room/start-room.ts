import { openRoom, type RoomOptions } from '../../example-app/control-room/open-room.js'
import type { Room } from '../../example-app/control-room/ports.js'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { compile } from '../support/process/compile.js'
import { knowSecret } from '../support/secret-search/index.js'
import { builtPage } from './built-page.js'

const API_KEY = 'key-of-a-control-room-in-a-test'
const ROOM = new URL('../../example-app/control-room/', import.meta.url)

export interface StartedRoom {
  readonly core: IdentityCore
  readonly room: Room
  /** Of the page. */
  readonly address: string
  /** Ends the page's server alone. */
  readonly stopServing: RoomServer['close']
  /** Serves the page again, at the same address. */
  serveAgain(): Promise<void>
  close(): Promise<void>
}

export type StartOptions = Pick<RoomOptions, 'redisUrl' | 'leaseSeconds'>

/** A control room as `npm start` opens it, in this process, its receivers in theirs. */
export async function startRoom(options: StartOptions = {}): Promise<StartedRoom> {
  knowSecret('an API key', API_KEY)
  const [files, programs, core] = await Promise.all([
    builtPage(),
    compiledPrograms(),
    startIdentityCore({ apiKey: API_KEY }),
  ])
  const room = await openRoom({
    core,
    openIssuer: createTestIssuer,
    apiKey: API_KEY,
    ...programs,
    ...options,
  })
  let server = await serveRoom({ room: async () => room, files })
  const { address } = server
  const { port, pathname } = new URL(address)
  return {
    core,
    room,
    address,
    stopServing: () => server.close(),
    async serveAgain() {
      server = await serveRoom({
        room: async () => room,
        files,
        port: Number(port),
        key: pathname.slice(1, -1),
      })
    },
    async close() {
      await server.close()
      await room.close()
      await core.close()
    },
  }
}

/** The programs of the room's processes: they start in a fraction of the time that their sources take. */
export async function compiledPrograms(): Promise<Pick<RoomOptions, 'programs' | 'tourProgram'>> {
  const programs = ['receivers/child', 'receivers/answer', 'tour/player'].map(
    (folder) => new URL(`${folder}/main.ts`, ROOM),
  )
  const [receiver = '', answer = '', tourProgram = ''] = await Promise.all(programs.map(compile))
  return { programs: { receiver, answer }, tourProgram }
}
