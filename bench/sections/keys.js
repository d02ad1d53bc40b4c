import { compare } from '../compare.js'

const AIM = 0.6

const stranger = { kind: 'read', pool: 'strangers', status: 401 }

/** Reads with a known key while every other request has an unknown key id. */
export async function keys(bench) {
  await compareFlood(bench, 'few', 'flood of unknown key ids, few tokens')
  await compareFlood(bench, 'fresh', 'flood of unknown key ids, every token new')
}

function compareFlood(bench, pool, title) {
  const known = { kind: 'read', pool, status: 200 }
  return compare(bench, {
    title,
    ours: { label: 'one unknown for one known', app: 'read', requests: [known, stranger] },
    others: [{ label: 'known ones alone', app: 'read', requests: [known], aim: AIM }],
  })
}
