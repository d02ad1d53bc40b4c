import { tellsStories } from './kind-cases.js'

// A minute or two: `npm test` tells some of them, `npm run simulate` as many as you like.
tellsStories('leased', 2000)
tellsStories('coupled', 500)
tellsStories('migration', 500)
