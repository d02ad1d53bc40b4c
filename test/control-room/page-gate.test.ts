import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { REBOUND_HOST, useBrowser } from '../support/browser/chromium.js'
import { builtPage } from './built-page.js'
import { quietRoom } from './quiet-room.js'

const browser = useBrowser()
const quiet = quietRoom()
let server: RoomServer
/** Another program of this machine, whose page knows the room's address. */
let neighbour: RunningServer

beforeAll(async () => {
  const subscribe = () => () => {}
  server = await serveRoom({
    room: async () => ({ ...quiet.room, subscribe }),
    files: await builtPage(),
  })
  neighbour = await listen((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>')
  }, 0)
})
afterAll(() => Promise.all([server.close(), neighbour.close()]))

it('opens under its own policy, by either name, and runs nothing that it did not bring', async () => {
  for (const name of ['127.0.0.1', 'localhost']) {
    const page = await browser.open(server.address.replace('127.0.0.1', name), {
      mayComplainOf: /TrustedHTML|Content Security Policy|TrustedScript/,
    })
    await page.getByRole('heading', { level: 1 }).waitFor()
    const acted = page.evaluate(() =>
      fetch('api/call', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{}',
      }).then((response) => response.json()),
    )
    expect(await acted).toEqual({ did: 'call' })
    const blocked = await page.evaluate(() => {
      const script = document.createElement('script')
      script.append('document.title = "taken over"')
      document.head.append(script)
      const style = document.createElement('style')
      style.append('body { display: none }')
      document.head.append(style)
      return [document.title, getComputedStyle(document.body).display]
    })
    expect(blocked).toEqual([expect.stringContaining('Control room'), 'block'])
  }
})

it('hears a button while more calls wait than a browser has connections', async () => {
  const waiting = await serveRoom({
    room: async () => ({
      ...quiet.room,
      subscribe: () => () => {},
      act: (name, input) => (name === 'call' ? new Promise(() => {}) : quiet.room.act(name, input)),
    }),
    files: await builtPage(),
  })
  onTestFinished(waiting.close)
  const page = await browser.open(waiting.address)
  const send = page.getByRole('button', { name: 'Send it' })
  for (let calls = 0; calls < 8; calls += 1) await send.click()
  await page.getByLabel('Calls in the background').selectOption('5')
  await expect.poll(() => quiet.acted.at(-1)?.name, { timeout: 20_000 }).toBe('background-load')
})

it("does nothing for a neighbour's page, not even for one that has found out the key", async () => {
  const before = quiet.acted.length
  for (const host of ['127.0.0.1', 'localhost']) {
    const page = await browser.open(neighbour.url, { mayComplainOf: /./, mayAskElsewhere: true })
    const address = server.address.replace('127.0.0.1', host)
    const seen = await page.evaluate(async (room) => {
      const tried = (path: string, options: RequestInit) =>
        fetch(`${room}${path}`, options).then(String, () => 'blocked')
      const heard = (target: EventTarget) =>
        new Promise<string>((done) => {
          for (const name of ['load', 'open']) target.addEventListener(name, () => done(name))
          target.addEventListener('error', () => done('blocked'))
        })
      const body = '{}'
      const headers = { 'Content-Type': 'application/json' }
      const script = Object.assign(document.createElement('script'), { src: `${room}main.js` })
      document.head.append(script)
      return Promise.all([
        tried('', {}),
        tried('api/call', { method: 'POST', headers, body }),
        tried('api/call', { method: 'POST', mode: 'no-cors', body }),
        heard(script),
        heard(new EventSource(`${room}events`)),
      ])
    }, address)
    expect(seen).toEqual(Array(5).fill('blocked'))
  }
  expect(quiet.acted).toHaveLength(before)
})

it('is not there under a name that somebody else points at this machine', async () => {
  const rebound = server.address.replace('127.0.0.1', REBOUND_HOST)
  const page = await browser.open(rebound, { mayComplainOf: /403|Cross-Origin-Opener-Policy/ })
  expect(await page.locator('body').textContent()).toBe('Not for you.')
})
