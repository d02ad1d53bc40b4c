import { provesStories, tellsStories } from './kind-cases.js'

tellsStories('coupled', 100)

provesStories('coupled', [
  'an answer is sent before COMMIT',
  'a refusal commits its writes',
  'a replay needs no token',
  'a refusal is recorded without its token',
])
