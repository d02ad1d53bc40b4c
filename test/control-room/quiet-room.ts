import { ActionError, type Room } from '../../example-app/control-room/ports.js'
import type { PageFiles } from '../../example-app/control-room/server/page-files.js'

type Send = Parameters<Room['subscribe']>[0]

/** A room in which nothing happens unless a test says so. */
export function quietRoom() {
  const pages = new Set<Send>()
  const acted: { name: string; input: unknown }[] = []
  const room: Room = {
    state() {
      throw new Error('a quiet room has no state')
    },
    async act(name, input) {
      acted.push({ name, input })
      if (name === 'visitor-fault') throw new ActionError('Say how many.')
      if (name === 'own-fault') throw new Error('a secret of the room')
      return { did: name }
    },
    subscribe(send) {
      send('state', { text: 'one\ntwo' })
      pages.add(send)
      return () => pages.delete(send)
    },
    async close() {},
  }
  return {
    room,
    acted,
    pages: () => pages.size,
    tell: ((type, message) => {
      for (const send of pages) send(type, message)
    }) satisfies Send,
  }
}

/** The smallest page. */
export const FILES: PageFiles = new Map([
  ['index.html', { type: 'text/html; charset=utf-8', content: Buffer.from('<p>page</p>') }],
  ['main.js', { type: 'text/javascript; charset=utf-8', content: Buffer.from('1') }],
])
