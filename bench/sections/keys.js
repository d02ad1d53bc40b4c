import { compare } from '../compare.js'

const AIM = 0.65
const GARBAGE = 1000

const known = { kind: 'read', pool: 'few', status: 200 }

/** Reads with a known key while every other request has a token that nobody signed. */
export async function keys(bench) {
  const [token] = await bench.issuer.mint(1)
  const cut = token.length - 200
  const garbage = Array.from({ length: GARBAGE }, (_, index) => `${index}${token.slice(9, cut)}`)
  await bench.load.ask({ pools: { garbage } })
  await compareFlood(bench, 'strangers', 'flood of unknown key ids', known)
  await compareFlood(bench, 'strangers', 'flood of unknown key ids, every token new', {
    ...known,
    pool: 'fresh',
  })
  await compareFlood(bench, 'garbage', 'flood of garbage tokens', known)
}

function compareFlood(bench, pool, title, reads) {
  const flood = { kind: 'read', pool, status: 401 }
  return compare(bench, {
    title,
    ours: { label: 'one of them for one known', app: 'read', requests: [reads, flood] },
    others: [
      { label: 'known ones alone', app: 'read', requests: [reads], aim: AIM },
      { label: 'a 401 to all, unread', app: 'refuseAll', requests: [flood] },
    ],
  })
}
