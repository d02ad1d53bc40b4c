import { provesStories, tellsStories } from './kind-cases.js'

tellsStories('leased', 400)

provesStories('leased', [
  'a running key is taken',
  'a result lives for its lease',
  'compensation without owner',
  'a token is remembered for a second',
  'a replay is not marked',
])
