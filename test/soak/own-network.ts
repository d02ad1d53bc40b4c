import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { promisify } from 'node:util'
import { HERE, type Place } from '../support/process/place.js'

/** A network inside this machine, on which each server and each receiver has its own address. */
export interface Network {
  /** If false, every place is 127.0.0.1, and the functions below change nothing. */
  readonly hasPartitions: boolean
  addPlaces(count: number): Promise<readonly Place[]>
  /** Returns the URL by which the places reach a server that this process has on its loopback interface. */
  publish(url: string): Promise<string>
  /** Cuts these places off from all others; they still reach each other. */
  separate(places: readonly Place[]): Promise<void>
  /** Cuts these places off from each other; all others still reach them. */
  isolate(places: readonly Place[]): Promise<void>
  /** Undoes `separate` and `isolate`. */
  heal(): Promise<void>
  /** Moves an additional address to a place, from the place that has it so far. */
  moveAddress(host: string, to: Place): Promise<void>
}

const VARIABLE = 'SOAK_NETWORK'
const HOST = '10.77.0.1'
const run = promisify(execFile)
const ip = (...words: string[]): Promise<unknown> => run('ip', words)

/**
 * Runs this program again in new namespaces, which end with it, and exits with its exit code. Returns at once
 * in that second process, or if this process cannot make namespaces: only root on Linux can.
 */
export function enterNetwork(): void {
  if (process.env[VARIABLE] !== undefined || process.platform !== 'linux') return
  if (process.getuid?.() !== 0) return
  const command = [
    '--net',
    '--mount',
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1),
  ]
  const env = { ...process.env, [VARIABLE]: 'own' }
  const { status } = spawnSync('unshare', command, { env, stdio: 'inherit' })
  process.exit(status ?? 1)
}

/** Opens a network of two bridges, `near` for all and `far` for separated places; or 127.0.0.1 without namespaces. */
export async function openNetwork(): Promise<Network> {
  if (process.env[VARIABLE] === undefined) return withoutNamespaces()
  await run('mkdir', ['-p', '/run/netns'])
  await run('mount', ['-t', 'tmpfs', 'none', '/run/netns'])
  await ip('link', 'set', 'lo', 'up')
  for (const bridge of ['near', 'far']) {
    await ip('link', 'add', bridge, 'type', 'bridge')
    await ip('link', 'set', bridge, 'up')
  }
  await ip('address', 'add', `${HOST}/16`, 'dev', 'near')
  const names: string[] = []
  const owners = new Map<string, string>()
  const setIsolated = (name: string, value: 'on' | 'off'): Promise<unknown> =>
    run('bridge', ['link', 'set', 'dev', name, 'isolated', value])

  async function addPlace(): Promise<Place> {
    const name = `soak${names.length + 1}`
    const host = `10.77.1.${names.push(name)}`
    await ip('netns', 'add', name)
    await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    await ip('link', 'set', name, 'master', 'near', 'up')
    await ip('-n', name, 'address', 'add', `${host}/16`, 'dev', 'eth0')
    for (const device of ['lo', 'eth0']) await ip('-n', name, 'link', 'set', device, 'up')
    return { host, namespace: name }
  }

  return {
    hasPartitions: true,
    async addPlaces(count) {
      const places: Place[] = []
      while (places.length < count) places.push(await addPlace())
      return places
    },
    publish,
    async separate(places) {
      for (const { namespace = '' } of places) await ip('link', 'set', namespace, 'master', 'far')
    },
    async isolate(places) {
      for (const { namespace = '' } of places) await setIsolated(namespace, 'on')
    },
    async heal() {
      for (const name of names) {
        await ip('link', 'set', name, 'master', 'near')
        await setIsolated(name, 'off')
      }
    },
    async moveAddress(host, { namespace = '' }) {
      const owner = owners.get(host)
      owners.set(host, namespace)
      if (owner !== undefined) await ip('-n', owner, 'address', 'del', `${host}/16`, 'dev', 'eth0')
      await ip('-n', namespace, 'address', 'add', `${host}/16`, 'dev', 'eth0')
      // Otherwise, the others would still send to the hardware address of the previous place.
      await ip('neigh', 'flush', 'dev', 'near')
      for (const name of names) await ip('-n', name, 'neigh', 'flush', 'dev', 'eth0')
    },
  }
}

async function publish(url: string): Promise<string> {
  const { port, host, hostname } = new URL(url)
  const forwarder = createServer((socket) => {
    const target = connect(Number(port), hostname).on('error', () => socket.destroy())
    socket.on('error', () => target.destroy())
    socket.pipe(target).pipe(socket)
  })
  await once(forwarder.listen(0, HOST).unref(), 'listening')
  return url.replace(host, `${HOST}:${(forwarder.address() as AddressInfo).port}`)
}

function withoutNamespaces(): Network {
  const nothing = async (): Promise<void> => {}
  return {
    hasPartitions: false,
    addPlaces: async (count) => Array<Place>(count).fill(HERE),
    publish: async (url) => url,
    separate: nothing,
    isolate: nothing,
    heal: nothing,
    moveAddress: nothing,
  }
}
