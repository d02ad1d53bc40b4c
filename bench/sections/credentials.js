import { compare } from '../compare.js'

/** What it costs a service's read that the endpoint takes sessions, too. */
export async function credentials(bench) {
  const few = { requests: [{ kind: 'read', pool: 'few', status: 200 }] }
  await compare(bench, {
    title: 'reads, few tokens, sessions taken too',
    ours: { ...few, label: 'acceptOneOf', app: 'eitherRead' },
    others: [{ ...few, label: 'serviceAuth alone', app: 'read', aim: 0.97 }],
  })
}
