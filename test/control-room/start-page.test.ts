import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RoomState } from '../../example-app/control-room/protocol.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { type Running, run } from '../example-app/run.js'
import { freePort } from '../support/network/free-port.js'
import { launch } from '../support/process/launch.js'
import { until } from '../support/until.js'
import { builtPage } from './built-page.js'
import { compiledPrograms } from './start-room.js'

/** The whole story is told first, and two receivers are compiled: a minute on a busy machine. */
const LONG = { timeout: 180_000 }

/** The last of the lines, with a key of 256 bits in it. */
const ADDRESS = /\n(http:\/\/127\.0\.0\.1:\d+\/[\w-]{43}\/)\n$/

const running = new Set<Running>()
let taken: RunningServer | undefined

beforeAll(() => builtPage())
afterAll(async () => {
  for (const { child } of running) child.kill('SIGKILL')
  await taken?.close()
})

async function start(port = '0'): Promise<Running> {
  const story = await run('start.ts', [], { CONTROL_ROOM_PORT: port })
  running.add(story)
  return story
}

/** The page's address; that of the room may come in pieces. */
async function addressOf(story: Running): Promise<string> {
  await story.printed('in a browser')
  for (;;) {
    const address = ADDRESS.exec(await story.printed(''))?.[1]
    if (address !== undefined) return address
    await delay(20)
  }
}

/** The first state that a page is told. */
async function stateAt(address: string): Promise<RoomState> {
  const { body } = await fetch(`${address}events`)
  let text = ''
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString()
    const [, data] = /event: state\ndata: (.+)\n\n/.exec(text) ?? []
    if (data !== undefined) return JSON.parse(data) as RoomState
  }
  throw new Error('the stream has ended')
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe.concurrent('npm start', () => {
  it(
    'leads to the page with its last line, again after five lines of the log, and ends all with it',
    LONG,
    async () => {
      const story = await start()
      const address = await addressOf(story)
      const page = await fetch(address)
      expect(page.status).toBe(200)
      expect(await page.text()).toContain('<title>Control room')
      expect((await fetch(new URL('/', address))).status).toBe(403)
      const [, orders] = /(http:\S+) {3}the receiver/.exec(await story.printed('')) ?? []
      for (let times = 0; times < 5; times += 1) await fetch(`${orders}/orders/o-1`)
      await story.printed(`Control room: ${address}`)
      const receivers = (await stateAt(address)).receivers.map(({ pid = 0 }) => pid)
      expect(receivers.map(isAlive)).toEqual([true, true])

      story.child.kill('SIGTERM')
      const { code, stderr } = await story.finished
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(receivers.map(isAlive)).toEqual([false, false])
    },
  )

  it('ends at once while the page is still being opened', LONG, async () => {
    const story = await start()
    await story.printed('What the receiver logs:')
    await delay(100)
    story.child.kill('SIGINT')
    const { code, stdout, stderr } = await story.finished
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toContain('in a browser')
  })

  it(
    'goes on without the page, and says so in a line, when its port is taken meanwhile',
    LONG,
    async () => {
      const port = String(await freePort())
      const story = await start(port)
      await story.printed('the caller')
      taken = await listen((_, response) => response.writeHead(404).end(), Number(port))
      const stdout = await story.printed('What the receiver logs:')
      const [, orders] = /(http:\S+) {3}the receiver/.exec(stdout) ?? []
      await until('it complains', async () => story.complained() !== '')
      expect(story.complained()).toBe(
        `start: no control room (CONTROL_ROOM_PORT is ${port}): port ${port} is in use on 127.0.0.1; choose another one\n`,
      )
      expect((await fetch(`${orders}/livez`)).status).toBe(200)
      story.child.kill('SIGTERM')
      expect((await story.finished).code).toBe(0)
    },
  )
})

it('leaves no process behind when it is killed', async () => {
  const { programs } = await compiledPrograms()
  const program = new URL('room-program.ts', import.meta.url)
  const room = await launch<number[]>(program, { args: [JSON.stringify(programs)] })
  expect(room.greeting.map(isAlive)).toEqual([true, true])
  await room.kill()
  await until('the receivers have ended', async () => !room.greeting.some(isAlive))
})
